/* JSON of strangers: parsed, written, parsed again; then as a source map and
 * as a manifest, whose names must be good ones. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* what was read must be written as something that reads as the same */
static void
round_trip(struct mr_json j)
{
	struct mr_json again;
	struct mr_err e;
	char *text;
	int rc;

	text = mr_json_dump(j, 2);
	rc = mr_json_parse(&again, text, strlen(text), &e);
	assert(rc == 0);
	assert(mr_json_equal(j, again));
	mr_json_free(again);
	free(text);
}

/* members that are kept must be as they were, all others gone */
static void
check_only(struct mr_json j, const char *path)
{
	static const char *const only[] = { "a", "models", "id", NULL };
	struct mr_json some, v;
	struct mr_err e;
	size_t k, n = 0;
	int rc;

	rc = mr_json_load_only(&some, path, only, &e);
	assert(rc == 0);
	assert(mr_json_type(some) == mr_json_type(j));
	for (k = 0; only[k] != NULL; k++) {
		v = mr_json_get(j, only[k]);
		n += mr_json_type(v) != MR_JSON_NONE;
		assert(mr_json_type(v) ==
		    mr_json_type(mr_json_get(some, only[k])));
	}
	assert(mr_json_type(j) != MR_JSON_OBJECT || mr_json_len(some) >= n);
	mr_json_free(some);
}

/* no model may have a name that a shell, make or a file system misreads */
static void
check_models(const struct mr_catalog *c)
{
	const struct mr_model *m;
	size_t i;

	for (i = 0; i < c->n; i++) {
		m = &c->models[i];
		assert(mr_id_ok(m->id) && mr_ref_ok(m->ref));
		assert(mr_format_ok(m->format));
		assert(m->version == NULL || mr_version_ok(m->version));
		assert(m->remote == NULL ||
		    strpbrk(m->remote, " \t\n'\"\\$`;&|<>()#*?[]!{}") == NULL);
		assert(mr_catalog_find(c, m->id) == m);
	}
}

/* the input as the file at PATH */
static char *
as_file(const uint8_t *data, size_t n)
{
	static FILE *f;
	static char path[32];

	if (f == NULL) {
		f = tmpfile();
		assert(f != NULL);
		snprintf(path, sizeof(path), "/dev/fd/%d", fileno(f));
	}
	if (ftruncate(fileno(f), 0) == -1 ||
	    pwrite(fileno(f), data, n, 0) != (ssize_t)n)
		abort();
	return path;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *files[2] = { NULL, NULL }, *none[1] = { NULL };
	struct mr_catalog c;
	struct mr_json j;
	struct mr_err e;

	if (mr_json_parse(&j, (const char *)data, n, &e) == -1) {
		assert(strchr(e.text, '\n') == NULL);
		return 0;
	}
	round_trip(j);
	files[0] = as_file(data, n);
	check_only(j, files[0]);
	mr_json_free(j);
	if (mr_catalog_load(&c, files, none, 0, &e) == 0) {
		check_models(&c);
		mr_catalog_free(&c);
	}
	if (mr_catalog_load(&c, files, files, 1, &e) == 0)
		mr_catalog_free(&c);
	if (mr_catalog_load(&c, none, files, 0, &e) == 0)
		mr_catalog_free(&c);
	return 0;
}
