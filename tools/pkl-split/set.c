/* The set of an artifact: written under temporary names, then swapped in. */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"
#include "split.h"

uint64_t
set_size(const struct set *s, size_t i)
{
	return i + 1 < s->n ? s->part : s->size - s->part * i;
}

char *
set_part(const struct set *s, size_t i)
{
	return mr_fmt("%s.p%02zu", s->name, i);
}

/* DIR/NAME with SUFFIX; the caller frees */
static char *
place(const struct set *s, const char *suffix)
{
	return mr_fmt("%s/%s%s", s->dir, s->name, suffix);
}

/* The number in NAME.pNN, or in .NAME.pNN.tmp if TMP; -1 if ENTRY is
 * something else. */
static long
part_number(const struct set *s, const char *entry, int tmp)
{
	size_t n, digits;

	n = strlen(s->name);
	if (tmp && *entry++ != '.')
		return -1;
	if (strncmp(entry, s->name, n) != 0 ||
	    strncmp(entry + n, ".p", 2) != 0)
		return -1;
	entry += n + 2;
	digits = strspn(entry, "0123456789");
	if (digits < 2 || digits > 9 ||
	    strcmp(entry + digits, tmp ? ".tmp" : "") != 0)
		return -1;
	return strtol(entry, NULL, 10);
}

/* Removes parts from number FIRST on, or those of a killed run if TMP. */
static int
sweep(const struct set *s, size_t first, int tmp, struct mr_err *e)
{
	struct dirent *d;
	char *path;
	DIR *dir;
	long i;
	int rc;

	dir = opendir(s->dir);
	if (dir == NULL)
		return mr_fail(e, "%s: %s", s->dir, strerror(errno));
	for (rc = 0; rc == 0 && (d = readdir(dir)) != NULL; ) {
		i = part_number(s, d->d_name, tmp);
		if (i < 0 || (size_t)i < first)
			continue;
		path = mr_fmt("%s/%s", s->dir, d->d_name);
		if (unlink(path) == -1 && errno != ENOENT)
			rc = mr_fail(e, "%s: remove: %s", path,
			    strerror(errno));
		free(path);
	}
	closedir(dir);
	return rc;
}

/* Removes PATH, which need not exist, and frees the name. */
static int
gone(char *path, struct mr_err *e)
{
	int rc = 0;

	if (unlink(path) == -1 && errno != ENOENT)
		rc = mr_fail(e, "%s: remove: %s", path, strerror(errno));
	free(path);
	return rc;
}

int
set_open(struct set *s, struct mr_err *e)
{
	uint64_t space;
	struct stat st;
	char *path;
	size_t i;
	int rc;

	s->marker.fd = -1;
	s->marker.tmp = s->marker.path = NULL;
	for (i = 0; i < PARTS_MAX; i++)
		s->out[i] = s->marker;
	if (stat(s->dir, &st) == -1)
		return mr_fail(e, "%s: %s", s->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return mr_fail(e, "%s: not a folder", s->dir);
	path = place(s, ".sha256");
	rc = mr_out_open(&s->marker, path, e);
	free(path);
	if (rc == -1 || sweep(s, 0, 1, e) == -1 ||
	    gone(mr_fmt("%s/.%s.tmp", s->dir, s->name), e) == -1)
		return -1;
	if (mr_space(s->dir, &space) == -1)
		return mr_fail(e, "%s: free space: %s", s->dir,
		    strerror(errno));
	if (space < s->size && !(s->keep && s->n == 0))
		return mr_fail(e, "%s: %llu bytes are free, wanted %llu",
		    s->dir, (unsigned long long)space,
		    (unsigned long long)s->size);
	return 0;
}

/* Writes part I (the whole if there are none) under its temporary name. */
static int
fill_one(struct set *s, size_t i, struct copy *c, int in, const char *path,
    struct mr_err *e)
{
	char suffix[24], *name;
	uint64_t want;
	int64_t got;
	int rc;

	want = s->n > 0 ? set_size(s, i) : s->size;
	if (s->n > 0 || !s->keep) {
		snprintf(suffix, sizeof(suffix), ".p%02zu", i);
		name = place(s, s->n > 0 ? suffix : "");
		rc = mr_out_open(&s->out[i], name, e);
		free(name);
		if (rc == -1)
			return -1;
	}
	got = copy_some(c, in, s->out[i].fd, want);
	if (got == -1)
		return mr_fail(e, "%s to %s: %s", path,
		    s->out[i].fd != -1 ? s->out[i].path : "digest",
		    strerror(errno));
	s->got += (uint64_t)got;
	return 0;
}

int
set_fill(struct set *s, int in, const char *path, char hex[MR_HEX],
    struct mr_err *e)
{
	struct copy *c;
	int rc = 0;
	size_t i;

	c = copy_new();
	for (i = 0; rc == 0 && i < (s->n > 0 ? s->n : 1); i++)
		rc = fill_one(s, i, c, in, path, e);
	copy_end(c, hex);
	for (i = 0; rc == 0 && i < PARTS_MAX && s->out[i].fd != -1; i++)
		if (mr_sync(s->out[i].fd) == -1)
			rc = mr_fail(e, "%s: fsync: %s", s->out[i].tmp,
			    strerror(errno));
	return rc;
}

int
set_publish(struct set *s, const char *hex, struct mr_err *e)
{
	char *line;
	int rc;
	size_t i;

	if (gone(place(s, ".sha256"), e) == -1)
		return -1;
	if (mr_sync_dir(s->marker.path) == -1)
		return mr_fail(e, "%s: fsync: %s", s->dir, strerror(errno));
	for (i = 0; i < PARTS_MAX && s->out[i].fd != -1; i++)
		if (mr_out_commit(&s->out[i], e) == -1)
			return -1;
	if (s->n > 0 && !s->keep && gone(place(s, ""), e) == -1)
		return -1;
	if (sweep(s, s->n, 0, e) == -1)
		return -1;
	if (s->n == 0)
		return 0;
	line = mr_fmt("%s  %s\n", hex, s->name);
	rc = mr_write(s->marker.fd, line, strlen(line));
	free(line);
	if (rc == -1)
		return mr_fail(e, "%s: %s", s->marker.tmp, strerror(errno));
	return mr_out_commit(&s->marker, e);
}

void
set_close(struct set *s)
{
	size_t i;

	for (i = 0; i < PARTS_MAX; i++)
		mr_out_abort(&s->out[i]);
	mr_out_abort(&s->marker);
}
