/* The local stores (STORE/objects/aa/bb/OID, as git-lfs has them), and the
 * way out of them. */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/fs.h>
#endif

#include "lfs-fetch.h"

enum { COPY = 128 << 10 };	/* more falls out of the cache */

char *
stored(const char *store, const char *oid)
{
	return mr_fmt("%s/objects/%.2s/%.2s/%s", store, oid, oid + 2, oid);
}

char *
incomplete(const char *oid, const char *kind)
{
	return mr_fmt("%s/incomplete/%s.%s", set.store[0], oid, kind);
}

char *
aside(const char *path, const char *oid)
{
	struct mr_err e;
	char *dir, *bad;

	dir = mr_fmt("%s/incomplete", set.store[0]);
	bad = incomplete(oid, "bad");
	if (mr_mkdirs(dir, &e) == -1 || rename(path, bad) == -1) {
		free(bad);
		bad = NULL;
	}
	free(dir);
	return bad;
}

/* Does FD hold O? Leaves FD at its start. */
static int
holds(int fd, const struct object *o)
{
	char hex[MR_HEX];
	struct stat st;
	uint64_t size;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == o->size &&
	    mr_sha256_fd(fd, hex, &size) == 0 && size == o->size &&
	    strcmp(hex, o->oid) == 0 && lseek(fd, 0, SEEK_SET) == 0;
}

int
open_checked(const char *path, const struct object *o)
{
	int fd;

	/* a fifo under that name must not hang us */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1 || holds(fd, o))
		return fd;
	close(fd);
	errno = 0;
	return -1;
}

int
store_find(const struct object *o)
{
	char *path, *bad;
	size_t i;
	int fd = -1;

	for (i = 0; i < set.nstores && fd == -1; i++) {
		path = stored(set.store[i], o->oid);
		fd = open_checked(path, o);
		if (fd == -1 && errno == 0) {
			bad = i == 0 ? aside(path, o->oid) : NULL;
			say("%s: the copy in the store is corrupt%s%s",
			    name_of(o), bad != NULL ? ", moved to " : ": ",
			    bad != NULL ? bad : path);
			free(bad);
		}
		free(path);
	}
	return fd;
}

/* Makes OUT, an empty file, share the blocks of IN, where that can be. */
static int
share(int in, int out)
{
#ifdef FICLONE
	return ioctl(out, FICLONE, in);
#else
	(void)in;
	(void)out;
	return -1;
#endif
}

/* all of IN to OUT */
static int
copy(int in, int out)
{
	ssize_t got;
	char *buf;

	buf = mr_malloc(COPY);
	while ((got = mr_read(in, buf, COPY)) > 0)
		if (mr_write(out, buf, (size_t)got) == -1)
			break;
	free(buf);
	return got == 0 ? 0 : -1;
}

int
deliver(const struct object *o, int fd, struct mr_err *e)
{
	struct mr_out out;

	if (o->path == NULL) {
		if (copy(fd, STDOUT_FILENO) == 0)
			return 0;
		return mr_fail(e, "standard output: %s", strerror(errno));
	}
	if (mr_out_open(&out, o->path, e) == -1)
		return -1;
	if (share(fd, out.fd) == -1 && copy(fd, out.fd) == -1) {
		mr_fail(e, "%s: %s", o->path, strerror(errno));
		mr_out_abort(&out);
		return -1;
	}
	return mr_out_commit(&out, e);
}
