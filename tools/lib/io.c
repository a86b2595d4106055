/* Reading, writing, and files that appear whole or not at all. */
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

ssize_t
mr_read(int fd, void *buf, size_t n)
{
	size_t have;
	ssize_t got;

	for (have = 0; have < n; have += (size_t)got) {
		got = read(fd, (char *)buf + have, n - have);
		if (got == -1 && errno == EINTR)
			got = 0;
		else if (got == -1)
			return -1;
		else if (got == 0)
			break;
	}
	return (ssize_t)have;
}

int
mr_write(int fd, const void *buf, size_t n)
{
	const char *p = buf;
	ssize_t put;

	while (n > 0) {
		put = write(fd, p, n);
		if (put == -1 && errno == EINTR)
			continue;
		if (put == -1)
			return -1;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

char *
mr_slurp(const char *path, size_t max, size_t *len, struct mr_err *e)
{
	struct stat st;
	size_t cap;
	ssize_t got;
	char *buf;
	int fd, saved;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1) {
		saved = errno;
		mr_fail(e, "%s: %s", path, strerror(errno));
		if (fd != -1)
			close(fd);
		errno = saved;
		return NULL;
	}
	/* a regular file says its size; anything else is read to the limit */
	cap = S_ISREG(st.st_mode) && (uint64_t)st.st_size < max ?
	    (size_t)st.st_size : max;
	buf = mr_malloc(cap + 1);
	got = mr_read(fd, buf, cap + 1);
	saved = errno;
	close(fd);
	if (got == -1) {
		mr_fail(e, "%s: read: %s", path, strerror(saved));
	} else if ((size_t)got > cap) {
		mr_fail(e, "%s: longer than %zu bytes", path, cap);
		saved = EFBIG;
	} else {
		buf[got] = '\0';
		*len = (size_t)got;
		return buf;
	}
	free(buf);
	errno = saved;
	return NULL;
}

int
mr_mkdirs(const char *path, struct mr_err *e)
{
	char *copy, *p;
	int rc = 0;

	if (*path == '\0')
		return mr_fail(e, "\"\": not a folder");
	copy = mr_strdup(path);
	for (p = copy; rc == 0 && p != NULL; ) {
		p = strchr(p + 1, '/');
		if (p != NULL)
			*p = '\0';
		if (mkdir(copy, 0777) == -1 && errno != EEXIST)
			rc = mr_fail(e, "%s: %s", copy, strerror(errno));
		if (p != NULL)
			*p = '/';
	}
	free(copy);
	return rc;
}

int
mr_sync(int fd)
{
	const char *s;

	s = getenv("MR_SYNC");
	if (s != NULL && strcmp(s, "0") == 0)
		return 0;
#ifdef F_FULLFSYNC
	if (fcntl(fd, F_FULLFSYNC) == 0)
		return 0;
#endif
	return fsync(fd);
}

/* the folder of PATH; the caller frees */
static char *
folder(const char *path)
{
	const char *slash;

	slash = strrchr(path, '/');
	if (slash == NULL)
		return mr_strdup(".");
	if (slash == path)
		return mr_strdup("/");
	return mr_fmt("%.*s", (int)(slash - path), path);
}

int
mr_sync_dir(const char *path)
{
	char *dir;
	int fd, rc;

	dir = folder(path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (fd == -1)
		return -1;
	rc = mr_sync(fd);
	if (rc == -1 && (errno == EINVAL || errno == ENOTSUP))
		rc = 0;	/* exFAT and others cannot: no more can be done */
	close(fd);
	return rc;
}

/* Locks FD and says if TMP still names it: another writer may have renamed
 * it away while we waited. */
static int
own(int fd, const char *tmp)
{
	struct stat a, b;

	while (flock(fd, LOCK_EX) == -1)
		if (errno != EINTR)
			return errno == ENOLCK || errno == ENOTSUP ? 1 : -1;
	if (fstat(fd, &a) == -1)
		return -1;
	if (stat(tmp, &b) == -1)
		return errno == ENOENT ? 0 : -1;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Makes FD empty. One that is so is left alone: ext4 flushes a file that was
 * truncated when it is closed, which takes 0.2 s for 500 MB. */
static int
clear(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_size == 0)
		return 0;
	return ftruncate(fd, 0);
}

int
mr_out_open(struct mr_out *o, const char *path, struct mr_err *e)
{
	const char *base;
	struct stat st;
	int mine;

	base = strrchr(path, '/');
	base = base == NULL ? path : base + 1;
	o->fd = -1;
	o->path = o->tmp = NULL;
	if (*base == '\0')
		return mr_fail(e, "\"%s\": not the name of a file", path);
	/* a rename would put a file in the place of /dev/null */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return mr_fail(e, "%s: not a regular file", path);
	o->path = mr_strdup(path);
	o->tmp = mr_fmt("%.*s.%s.tmp", (int)(base - path), path, base);
	do {
		o->fd = open(o->tmp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0666);
		mine = o->fd == -1 ? -1 : own(o->fd, o->tmp);
		if (mine == 0)
			close(o->fd);
	} while (mine == 0);
	if (mine == 1 && clear(o->fd) == 0)
		return 0;
	mr_fail(e, "%s: %s", o->tmp, strerror(errno));
	if (o->fd != -1)
		close(o->fd);
	o->fd = -1;
	free(o->path);
	free(o->tmp);
	o->path = o->tmp = NULL;
	return -1;
}

int
mr_out_commit(struct mr_out *o, struct mr_err *e)
{
	if (mr_sync(o->fd) == -1) {
		mr_fail(e, "%s: fsync: %s", o->tmp, strerror(errno));
	} else if (rename(o->tmp, o->path) == -1) {
		mr_fail(e, "%s: rename: %s", o->path, strerror(errno));
	} else {
		free(o->tmp);
		o->tmp = NULL;	/* it is the file now: abort must not see it */
		if (close(o->fd) == -1)
			mr_fail(e, "%s: close: %s", o->path, strerror(errno));
		else if (mr_sync_dir(o->path) == -1)
			mr_fail(e, "%s: fsync of its folder: %s", o->path,
			    strerror(errno));
		else {
			o->fd = -1;
			mr_out_abort(o);
			return 0;
		}
		o->fd = -1;
	}
	mr_out_abort(o);
	return -1;
}

void
mr_out_abort(struct mr_out *o)
{
	if (o->tmp != NULL)
		unlink(o->tmp);
	if (o->fd != -1)
		close(o->fd);
	free(o->tmp);
	free(o->path);
	o->tmp = o->path = NULL;
	o->fd = -1;
}

int
mr_space(const char *path, uint64_t *bytes)
{
	struct statvfs v;
	char *dir;
	int rc;

	rc = statvfs(path, &v);
	if (rc == -1 && errno == ENOENT) {
		dir = folder(path);
		rc = statvfs(dir, &v);
		free(dir);
	}
	if (rc == 0)
		*bytes = (uint64_t)v.f_bavail * (uint64_t)v.f_frsize;
	return rc;
}

int
mr_litter(const char *name)
{
	return strncmp(name, "._", 2) == 0 || strcmp(name, ".DS_Store") == 0;
}
