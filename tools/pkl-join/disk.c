/* A file of the set in a folder of this machine. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pkl-join.h"

/* a descriptor of BASE + SUFFIX; -1 with *STATUS */
static int
open_file(const struct source *s, const char *suffix, struct stat *st,
    int *status, struct mr_err *e)
{
	char *path;
	int fd;

	path = mr_fmt("%s%s", s->base, suffix);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	*status = MR_UNFIT;
	if (fd == -1) {
		if (errno == ENOENT)
			*status = MR_NO;
		mr_fail(e, "%s: %s", path, errno == ENOENT ? "missing" :
		    strerror(errno));
	} else if (fstat(fd, st) == -1 || !S_ISREG(st->st_mode)) {
		mr_fail(e, "%s: not a regular file", path);
		close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

int
disk_size(const struct source *s, const char *suffix, uint64_t *size,
    struct mr_err *e)
{
	struct stat st;
	int fd, status;

	fd = open_file(s, suffix, &st, &status, e);
	if (fd == -1)
		return status;
	close(fd);
	*size = (uint64_t)st.st_size;
	return MR_OK;
}

int
disk_read(const struct source *s, const char *suffix, uint64_t size,
    const struct taker *t, struct mr_err *e)
{
	static char buf[MR_BUF];
	struct stat st;
	uint64_t got = 0;
	ssize_t n = 0;
	int fd, status;

	fd = open_file(s, suffix, &st, &status, e);
	if (fd == -1)
		return status;
	status = MR_OK;
	while (status == MR_OK && (n = mr_read(fd, buf, sizeof(buf))) > 0) {
		got += (uint64_t)n;
		if (t->take(t->arg, buf, (size_t)n, e) == -1)
			status = MR_UNFIT;
	}
	if (n == -1) {
		mr_fail(e, "%s%s: %s", s->base, suffix, strerror(errno));
		status = MR_UNFIT;
	} else if (status == MR_OK && got != size) {
		mr_fail(e, "%s%s: has changed while it was read", s->base,
		    suffix);
		status = MR_NO;
	}
	close(fd);
	return status;
}
