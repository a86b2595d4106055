/* Manifests of strangers: read, changed, written; what is written must mean
 * the same, read again, and be written as the same bytes. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* a file of N bytes that can be read by its name; the caller closes it */
static FILE *
file_of(const void *data, size_t n, char path[32])
{
	FILE *f;

	f = tmpfile();
	assert(f != NULL);
	fwrite(data, 1, n, f);
	fflush(f);
	snprintf(path, 32, "/dev/fd/%d", fileno(f));
	return f;
}

/* J, the text as libjq reads it, has the list; V is what was made of it */
static void
check_same(struct mr_json j, const char *text, size_t n,
    const struct mr_manifest *m)
{
	struct mr_json is, list;
	struct mr_err e;
	int rc;

	rc = mr_json_parse(&is, text, n, &e);
	assert(rc == 0);
	list = mr_json_type(j) == MR_JSON_ARRAY ? j :
	    mr_json_get(j, "models");
	if (mr_json_len(list) == m->n)
		assert(mr_json_equal(list, mr_json_get(is, "models")));
	else
		assert(m->n < mr_json_len(list));
	mr_json_free(is);
}

/* sets, deletes and moves: the rest must still be a manifest */
static void
change(struct mr_manifest *m)
{
	struct mr_manifest again;
	struct mr_entry copy;
	struct mr_err e;
	char path[32], *text;
	size_t n;
	FILE *f;
	int rc;

	mr_entry_set(m, &m->entry[0], "name", "\"\\ud83d\\udc40\"");
	mr_entry_set(m, &m->entry[0], "artifact_size", "9007199254740992");
	mr_entry_del(&m->entry[0], "series");
	copy = m->entry[0];
	copy.id[0] = copy.id[0] == 'x' ? 'y' : 'x';
	mr_manifest_add(m, m->n / 2, &copy);
	text = mr_manifest_text(m, &n);
	f = file_of(text, n, path);
	rc = mr_manifest_load(&again, path, &e);
	if (rc == 0) {	/* else the new id is one that was there */
		assert(again.n == m->n || again.n == m->n - 1);
		mr_manifest_free(&again);
	}
	fclose(f);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mr_manifest m, again;
	struct mr_json j;
	struct mr_err e;
	char path[32], *text, *twice;
	size_t i, len, len2;
	FILE *f, *g;
	int rc;

	f = file_of(data, n, path);
	if (mr_manifest_load(&m, path, &e) == 0) {
		for (i = 0; i < m.n; i++)
			assert(mr_id_ok(m.entry[i].id));
		text = mr_manifest_text(&m, &len);
		rc = mr_json_load(&j, path, &e);
		assert(rc == 0);
		check_same(j, text, len, &m);
		mr_json_free(j);
		g = file_of(text, len, path);
		rc = mr_manifest_load(&again, path, &e);
		assert(rc == 0);
		twice = mr_manifest_text(&again, &len2);
		assert(len == len2 && memcmp(text, twice, len) == 0);
		free(text);
		free(twice);
		mr_manifest_free(&again);
		fclose(g);
		if (m.n > 0)
			change(&m);
		mr_manifest_free(&m);
	}
	fclose(f);
	return 0;
}
