/* Room on the disks, asked for before anything is written. */
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lfs-fetch.h"

enum { MAX_DISKS = 16 };

/* what is wanted of one file system */
struct need {
	dev_t		 dev;
	uint64_t	 bytes;
	char		*path;		/* some folder on it */
};

/* Adds BYTES to what is wanted where DIR lies, or will lie if it is MADE. */
static int
want(struct need need[], size_t *n, const char *dir, int made, uint64_t bytes,
    struct mr_err *e)
{
	struct stat st;
	char *up, *slash;
	size_t i;
	int rc;

	up = mr_strdup(dir);
	while ((rc = stat(up, &st)) == -1 && made && errno == ENOENT &&
	    strcmp(up, ".") != 0) {
		slash = strrchr(up, '/');
		if (slash == NULL)
			slash = up;
		if (slash == up)
			*slash++ = dir[0] == '/' ? '/' : '.';
		*slash = '\0';
	}
	if (rc == -1) {
		mr_fail(e, "%s: %s", dir, strerror(errno));
		free(up);
		return -1;
	}
	for (i = 0; i < *n && need[i].dev != st.st_dev; i++)
		;
	if (i == *n && i < MAX_DISKS)
		need[(*n)++] = (struct need){ st.st_dev, 0, up };
	else
		free(up);
	if (i < MAX_DISKS)	/* of more, the write itself will tell */
		need[i].bytes = bytes > UINT64_MAX - need[i].bytes ?
		    UINT64_MAX : need[i].bytes + bytes;
	return 0;
}

/* Adds what O wants of the disk where it goes. */
static int
want_output(struct need need[], size_t *n, const struct object *o,
    struct mr_err *e)
{
	char *dir, *slash;
	int rc;

	dir = mr_strdup(o->path);
	slash = strrchr(dir, '/');
	if (slash != NULL)
		slash[slash == dir] = '\0';
	rc = want(need, n, slash == NULL ? "." : dir, 0, o->size, e);
	free(dir);
	return rc;
}

int
room(struct object *const o[], size_t n, struct mr_err *e)
{
	struct need need[MAX_DISKS];
	uint64_t bytes;
	size_t i, k = 0;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		if (set.nstores > 0 && o[i]->twin == NULL)
			rc = want(need, &k, set.store[0], 1,
			    o[i]->size - left_over(o[i]), e);
		else if (o[i]->path == NULL)
			rc = want(need, &k, temporary(), 0, o[i]->size, e);
		if (rc == 0 && o[i]->path != NULL)
			rc = want_output(need, &k, o[i], e);
	}
	for (i = 0; i < k; i++) {
		if (rc == 0 && mr_space(need[i].path, &bytes) == 0 &&
		    bytes < need[i].bytes)
			rc = mr_fail(e, "%s: %llu bytes are free, wanted %llu",
			    need[i].path, (unsigned long long)bytes,
			    (unsigned long long)need[i].bytes);
		free(need[i].path);
	}
	return rc;
}
