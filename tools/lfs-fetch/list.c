/* The list of -i: lines "OID SIZE PATH". */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "lfs-fetch.h"

enum { MAX_OBJECTS = 100000 };

struct object *
object_new(const char *oid, uint64_t size, const char *path)
{
	struct object *o;

	o = mr_malloc(sizeof(*o));
	memset(o, 0, sizeof(*o));
	memcpy(o->oid, oid, sizeof(o->oid));
	o->size = size;
	o->path = path != NULL ? mr_strdup(path) : NULL;
	o->part.fd = o->part.out.fd = -1;
	return o;
}

/* a line "oid size path" of -i, taken apart */
static struct object *
object_of(char *line, size_t n, size_t number, struct mr_err *e)
{
	char shown[MR_SHOWN], *oid, *size, *path = line;
	uint64_t bytes;

	if (n > 0 && line[n - 1] == '\n')
		line[--n] = '\0';
	mr_show(shown, line, n);
	oid = strsep(&path, " ");
	size = path != NULL ? strsep(&path, " ") : NULL;
	if (strlen(line) + (size != NULL) + (path != NULL) < 2 ||
	    path == NULL || *path == '\0' || memchr(path, '\0',
	    (size_t)(line + n - path)) != NULL)
		mr_fail(e, "line %zu: \"%s\", wanted \"OID SIZE PATH\"", number,
		    shown);
	else if (!mr_oid_ok(oid))
		mr_fail(e, "line %zu: \"%s\": oid is not 64 lower-case hex "
		    "digits", number, shown);
	else if (mr_number(size, INT64_MAX, &bytes) == -1)
		mr_fail(e, "line %zu: \"%s\": size is not a number", number,
		    shown);
	else
		return object_new(oid, bytes, path);
	return NULL;
}

static int
by_path(const void *a, const void *b)
{
	const struct object *x = *(struct object *const *)a;
	const struct object *y = *(struct object *const *)b;

	return strcmp(x->path, y->path);
}

static int
by_oid(const void *a, const void *b)
{
	const struct object *x = *(struct object *const *)a;
	const struct object *y = *(struct object *const *)b;
	int c;

	c = strcmp(x->oid, y->oid);
	return c != 0 ? c : strcmp(x->path, y->path);
}

/* Refuses a path that is named twice; finds equal objects. */
static int
compare(struct object *const list[], size_t n, struct mr_err *e)
{
	struct object **o;
	size_t i;
	int rc = 0;

	if (n == 0)
		return 0;
	o = mr_malloc(n * sizeof(struct object *));
	memcpy(o, list, n * sizeof(struct object *));
	qsort(o, n, sizeof(struct object *), by_path);
	for (i = 1; i < n && rc == 0; i++)
		if (strcmp(o[i - 1]->path, o[i]->path) == 0)
			rc = mr_fail(e, "%s: named twice, for %s and %s",
			    o[i]->path, o[i - 1]->oid, o[i]->oid);
	qsort(o, n, sizeof(struct object *), by_oid);
	for (i = 1; i < n && rc == 0; i++) {
		if (strcmp(o[i - 1]->oid, o[i]->oid) != 0)
			continue;
		if (o[i - 1]->size != o[i]->size)
			rc = mr_fail(e, "%s: has two sizes, for %s and %s",
			    o[i]->oid, o[i - 1]->path, o[i]->path);
		o[i]->twin = o[i - 1]->twin != NULL ? o[i - 1]->twin :
		    o[i - 1];
	}
	free(o);
	return rc;
}

struct object **
read_list(size_t *n, struct mr_err *e)
{
	struct object **o = NULL;
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	for (*n = 0; (len = getline(&line, &cap, stdin)) != -1; (*n)++) {
		if (*n == MAX_OBJECTS) {
			mr_fail(e, "standard input: more than %d lines",
			    MAX_OBJECTS);
			return NULL;
		}
		if (*n % 64 == 0)
			o = mr_realloc(o, (*n + 64) *
			    sizeof(struct object *));
		o[*n] = object_of(line, (size_t)len, *n + 1, e);
		if (o[*n] == NULL)
			return NULL;
	}
	free(line);
	if (ferror(stdin))
		err(MR_UNFIT, "standard input");
	if (o == NULL)
		o = mr_malloc(1);
	return compare(o, *n, e) == 0 ? o : NULL;
}
