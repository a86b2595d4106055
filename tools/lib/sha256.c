/* SHA-256 of buffers, descriptors and files, by OpenSSL. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "mr.h"

/* an EVP_MD_CTX under a name that hides the library */
struct mr_sha256 {
	EVP_MD_CTX	*ctx;
};

struct mr_sha256 *
mr_sha256_new(void)
{
	static const EVP_MD *md;	/* fetched once: a fetch costs 1 us */
	struct mr_sha256 *h;

	if (md == NULL)
		md = EVP_sha256();
	h = mr_malloc(sizeof(*h));
	h->ctx = EVP_MD_CTX_new();
	if (h->ctx == NULL || EVP_DigestInit_ex(h->ctx, md, NULL) != 1)
		errx(MR_UNFIT, "OpenSSL has no SHA-256 here");
	return h;
}

void
mr_sha256_add(struct mr_sha256 *h, const void *buf, size_t n)
{
	if (EVP_DigestUpdate(h->ctx, buf, n) != 1)
		errx(MR_UNFIT, "OpenSSL: SHA-256 failed");
}

void
mr_sha256_end(struct mr_sha256 *h, char hex[MR_HEX])
{
	static const char digit[] = "0123456789abcdef";
	unsigned char md[32];
	size_t i;

	if (EVP_DigestFinal_ex(h->ctx, md, NULL) != 1)
		errx(MR_UNFIT, "OpenSSL: SHA-256 failed");
	EVP_MD_CTX_free(h->ctx);
	free(h);
	if (hex == NULL)
		return;
	for (i = 0; i < sizeof(md); i++) {
		hex[2 * i] = digit[md[i] >> 4];
		hex[2 * i + 1] = digit[md[i] & 15];
	}
	hex[64] = '\0';
}

void
mr_sha256_buf(const void *buf, size_t n, char hex[MR_HEX])
{
	struct mr_sha256 *h;

	h = mr_sha256_new();
	mr_sha256_add(h, buf, n);
	mr_sha256_end(h, hex);
}

int
mr_sha256_fd(int fd, char hex[MR_HEX], uint64_t *size)
{
	struct mr_sha256 *h;
	ssize_t got;
	char *buf;
	int saved;

	buf = mr_malloc(MR_BUF);
	h = mr_sha256_new();
	*size = 0;
	while ((got = mr_read(fd, buf, MR_BUF)) > 0) {
		mr_sha256_add(h, buf, (size_t)got);
		*size += (uint64_t)got;
	}
	saved = errno;
	mr_sha256_end(h, hex);
	free(buf);
	errno = saved;
	return got < 0 ? -1 : 0;
}

int
mr_sha256_file(const char *path, char hex[MR_HEX], uint64_t *size,
    struct mr_err *e)
{
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return mr_fail(e, "%s: %s", path, strerror(errno));
	rc = mr_sha256_fd(fd, hex, size);
	if (rc == -1)
		mr_fail(e, "%s: read: %s", path, strerror(errno));
	close(fd);
	return rc;
}

int
mr_sha256_line(const char *buf, size_t n, const char *name, char hex[MR_HEX],
    struct mr_err *e)
{
	char shown[MR_SHOWN];
	size_t k = strlen(name);

	hex[0] = '\0';
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	if (n < MR_HEX + 1 || buf[MR_HEX - 1] != ' ' ||
	    (buf[MR_HEX] != ' ' && buf[MR_HEX] != '*'))
		return mr_fail(e, "\"%s\": wanted a sha256, two blanks and "
		    "%.200s", mr_show(shown, buf, n), name);
	memcpy(hex, buf, MR_HEX - 1);
	hex[MR_HEX - 1] = '\0';
	if (!mr_oid_ok(hex)) {
		hex[0] = '\0';
		return mr_fail(e, "\"%s\": wanted 64 lower-case hex digits",
		    mr_show(shown, buf, MR_HEX - 1));
	}
	buf += MR_HEX + 1;
	n -= MR_HEX + 1;
	if (n == k && memcmp(buf, name, k) == 0)
		return 0;
	hex[0] = '\0';
	return mr_fail(e, "is of \"%s\", wanted %.200s", mr_show(shown, buf, n),
	    name);
}
