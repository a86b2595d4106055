/* Copies an ONNX model to its final name while it is walked and hashed. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

enum { RING = 4 };	/* buffers between the copy and the digest */

/* The digest runs beside the copy: it is the slower of the two. */
struct hasher {
	pthread_t	 thread;
	pthread_mutex_t	 lock;
	pthread_cond_t	 moved;
	struct mr_sha256 *sha;
	unsigned char	*buf[RING];
	size_t		 len[RING];
	uint64_t	 given, hashed;		/* buffers so far */
	int		 last;			/* no more will come */
};

struct job {
	const char	*path;
	const char	*digest;	/* wanted, or NULL */
	uint64_t	 want;		/* bytes wanted, or UINT64_MAX */
	uint64_t	 known;		/* bytes of the input, or UINT64_MAX */
	uint64_t	 size;		/* bytes so far */
	char		 hex[MR_HEX];
	struct mr_onnx	*walker;
	struct mr_out	 out;
	struct hasher	 h;
};

static const char usage_line[] =
    "usage: onnx-stage [-d SHA256] [-z SIZE] -o FILE";

/* ---- the digest's thread ---- */

static void *
hash(void *arg)
{
	struct hasher *h = arg;
	size_t i;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (h->hashed == h->given && !h->last)
			pthread_cond_wait(&h->moved, &h->lock);
		if (h->hashed == h->given)
			break;
		i = h->hashed % RING;
		pthread_mutex_unlock(&h->lock);
		mr_sha256_add(h->sha, h->buf[i], h->len[i]);
		pthread_mutex_lock(&h->lock);
		h->hashed++;
		pthread_cond_signal(&h->moved);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static void
hasher_start(struct hasher *h)
{
	int i;

	h->sha = mr_sha256_new();
	for (i = 0; i < RING; i++)
		h->buf[i] = mr_malloc(MR_BUF);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->moved, NULL);
	errno = pthread_create(&h->thread, NULL, hash, h);
	if (errno != 0)
		err(MR_UNFIT, "thread");
}

/* The next buffer to fill: waits until it has been hashed. */
static unsigned char *
hasher_next(struct hasher *h)
{
	pthread_mutex_lock(&h->lock);
	while (h->given - h->hashed == RING)
		pthread_cond_wait(&h->moved, &h->lock);
	pthread_mutex_unlock(&h->lock);
	return h->buf[h->given % RING];
}

/* N bytes are in the buffer that hasher_next returned. */
static void
hasher_give(struct hasher *h, size_t n)
{
	pthread_mutex_lock(&h->lock);
	h->len[h->given % RING] = n;
	h->given++;
	pthread_cond_signal(&h->moved);
	pthread_mutex_unlock(&h->lock);
}

static void
hasher_end(struct hasher *h, char hex[MR_HEX])
{
	int i;

	pthread_mutex_lock(&h->lock);
	h->last = 1;
	pthread_cond_signal(&h->moved);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_mutex_destroy(&h->lock);
	pthread_cond_destroy(&h->moved);
	mr_sha256_end(h->sha, hex);
	for (i = 0; i < RING; i++)
		free(h->buf[i]);
}

/* ---- the copy ---- */

/* Bytes left in standard input, where it is a regular file. */
static uint64_t
input_size(void)
{
	struct stat st;
	off_t at;

	if (fstat(STDIN_FILENO, &st) == -1 || !S_ISREG(st.st_mode))
		return UINT64_MAX;
	at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (at == -1 || at > st.st_size)
		return UINT64_MAX;
	return (uint64_t)(st.st_size - at);
}

/* Opens the output, if the size is right and there is room for it. */
static int
begin(struct job *j)
{
	struct mr_err e;
	uint64_t room, need;

	if (j->want != UINT64_MAX && j->known != UINT64_MAX &&
	    j->known != j->want) {
		warnx("%s: size is %" PRIu64 ", wanted %" PRIu64, j->path,
		    j->known, j->want);
		return MR_NO;
	}
	if (mr_out_open(&j->out, j->path, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	need = j->known != UINT64_MAX ? j->known : j->want;
	if (need != UINT64_MAX && mr_space(j->out.tmp, &room) == 0 &&
	    room < need) {
		warnx("%s: no space: %" PRIu64 " bytes are free, wanted %"
		    PRIu64, j->path, room, need);
		return MR_UNFIT;
	}
	return MR_OK;
}

/* Takes N bytes at BUF: walks them first, so that nothing is written for what
 * is no model at all, and a pointer is not called a model of a wrong size. */
static int
chunk(struct job *j, const unsigned char *buf, size_t n)
{
	struct mr_err e;
	int status;

	if (mr_onnx_feed(j->walker, buf, n, &e) == -1 ||
	    (n < MR_BUF && mr_onnx_end(j->walker, &e) == -1)) {
		warnx("%s: %s", j->path, e.text);
		return MR_NO;
	}
	if (j->out.fd == -1) {
		status = begin(j);
		if (status != MR_OK)
			return status;
	}
	j->size += n;
	if (j->want != UINT64_MAX && j->size > j->want) {
		warnx("%s: size is over %" PRIu64 ", wanted %" PRIu64,
		    j->path, j->want, j->want);
		return MR_NO;
	}
	hasher_give(&j->h, n);
	if (mr_write(j->out.fd, buf, n) == -1) {
		warn("%s: write", j->path);
		return MR_UNFIT;
	}
	return MR_OK;
}

static int
copy(struct job *j)
{
	unsigned char *buf;
	ssize_t got;
	int status;

	do {
		buf = hasher_next(&j->h);
		got = mr_read(STDIN_FILENO, buf, MR_BUF);
		if (got == -1) {
			warn("standard input");
			return MR_UNFIT;
		}
		status = chunk(j, buf, (size_t)got);
	} while (got == MR_BUF && status == MR_OK);
	return status;
}

/* Is it what was wanted? */
static int
verdict(struct job *j)
{
	if (j->want != UINT64_MAX && j->size != j->want) {
		warnx("%s: size is %" PRIu64 ", wanted %" PRIu64, j->path,
		    j->size, j->want);
		return MR_NO;
	}
	if (j->digest != NULL && strcmp(j->hex, j->digest) != 0) {
		warnx("%s: sha256 is %s, wanted %s", j->path, j->hex,
		    j->digest);
		return MR_NO;
	}
	return MR_OK;
}

static void
record(const struct job *j)
{
	struct mr_onnx_info m;

	mr_onnx_info(j->walker, &m);
	printf("{\"path\": ");
	mr_json_quote(stdout, j->path);
	printf(", \"size\": %" PRIu64 ", \"sha256\": \"%s\", \"inputs\": ",
	    j->size, j->hex);
	mr_json_shapes(stdout, m.inputs, m.ninputs);
	printf(", \"outputs\": ");
	mr_json_shapes(stdout, m.outputs, m.noutputs);
	printf(", \"checkpoint\": ");
	if (m.checkpoint != NULL)
		mr_json_quote(stdout, m.checkpoint);
	else
		printf("null");
	printf("}\n");
}

/* The record first: a model whose record is lost gets no name. */
static int
publish(struct job *j)
{
	struct mr_err e;

	record(j);
	if (fflush(stdout) != 0)
		return MR_UNFIT;	/* mr_finish says so */
	if (mr_out_commit(&j->out, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	return MR_OK;
}

static int
stage(struct job *j)
{
	int status;

	j->known = input_size();
	j->walker = mr_onnx_new(j->known);
	j->out.fd = -1;
	hasher_start(&j->h);
	status = copy(j);
	hasher_end(&j->h, j->hex);
	if (status == MR_OK)
		status = verdict(j);
	if (status == MR_OK)
		status = publish(j);
	mr_out_abort(&j->out);
	mr_onnx_free(j->walker);
	return status;
}

int
main(int argc, char *argv[])
{
	struct job j = { .want = UINT64_MAX };
	int c;

	while ((c = getopt(argc, argv, "d:ho:Vz:")) != -1)
		switch (c) {
		case 'd':
			if (!mr_oid_ok(optarg))
				errx(MR_UNFIT, "%s: not a sha256, wanted 64"
				    " lower-case hex digits", optarg);
			j.digest = optarg;
			break;
		case 'o':
			j.path = optarg;
			break;
		case 'z':
			if (mr_number(optarg, INT64_MAX, &j.want) == -1)
				errx(MR_UNFIT, "%s: not a size, wanted a"
				    " number of bytes", optarg);
			break;
		case 'h':
			puts(usage_line);
			return mr_finish(MR_OK);
		case 'V':
			return mr_version();
		default:
			goto bad;
		}
	if (j.path == NULL || j.path[0] == '\0' || argc != optind)
		goto bad;
	return mr_finish(stage(&j));
bad:
	fprintf(stderr, "%s\n", usage_line);
	return mr_finish(MR_UNFIT);
}
