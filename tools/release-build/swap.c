/* A release is replaced as one: made as .VERSION.tmp beside VERSION, which
 * goes to .VERSION.old and away only when the new one has its name. */
#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "release-build.h"

static int
there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int
gone(const char *dir, const char *name, struct mr_err *e)
{
	char *path;
	int rc = 0;

	path = mr_fmt("%s/%s", dir, name);
	if (unlink(path) == -1 && errno != ENOENT)
		rc = mr_fail(e, "%s: remove: %s", path, strerror(errno));
	free(path);
	return rc;
}

int
swap_remove(const char *dir, struct mr_err *e)
{
	struct dirent *d;
	DIR *f;
	int rc;

	if (!there(dir))
		return 0;
	rc = gone(dir, "SHA256SUMS", e);
	f = opendir(dir);
	if (f == NULL)
		return mr_fail(e, "%s: %s", dir, strerror(errno));
	while (rc == 0 && (d = readdir(f)) != NULL)
		if (strcmp(d->d_name, ".") != 0 &&
		    strcmp(d->d_name, "..") != 0)
			rc = gone(dir, d->d_name, e);
	closedir(f);
	if (rc == 0 && rmdir(dir) == -1)
		rc = mr_fail(e, "%s: remove: %s", dir, strerror(errno));
	return rc;
}

static int
shift(const char *from, const char *to, struct mr_err *e)
{
	if (rename(from, to) == 0)
		return 0;
	return mr_fail(e, "%s to %s: %s", from, to, strerror(errno));
}

int
swap_begin(struct release *r, struct mr_err *e)
{
	int fd;

	if (mr_mkdirs(r->folder, e) == -1)
		return -1;
	/* held as long as we live; another run waits for its end */
	fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return mr_fail(e, "%s: %s", r->folder, strerror(errno));
	while (flock(fd, LOCK_EX) == -1)
		if (errno != EINTR)
			break;		/* a disk without locks */
	if (!there(r->final) && there(r->old) &&
	    shift(r->old, r->final, e) == -1)
		return -1;
	unlink(r->map);
	return swap_remove(r->old, e) == -1 ? -1 : swap_remove(r->tmp, e);
}

int
swap_end(const struct release *r, struct mr_err *e)
{
	if (mr_sync_dir(r->tmp) == -1)
		return mr_fail(e, "%s: fsync: %s", r->folder, strerror(errno));
	if (there(r->final) && shift(r->final, r->old, e) == -1)
		return -1;
	if (shift(r->tmp, r->final, e) == -1)
		return -1;
	if (mr_sync_dir(r->final) == -1)
		return mr_fail(e, "%s: fsync: %s", r->folder, strerror(errno));
	return swap_remove(r->old, e);
}
