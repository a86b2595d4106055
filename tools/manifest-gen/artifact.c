/* The records of artifacts, and multipart.json, which is made of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "manifest-gen.h"

/* Reads results/ID_artifact.json, if it is there. */
int
read_artifact(struct artifact *a, const char *results, const char *id,
    struct mr_err *e)
{
	static const char *const only[] = { "id", "status", "size", "sha256",
	    "multipart", "ready", "name", "parts", NULL };
	struct mr_json j, ready;
	const char *s;
	char *path;
	int rc;

	memset(a, 0, sizeof(*a));
	a->id = id;
	path = mr_fmt("%s/%s_artifact.json", results, id);
	rc = mr_json_load_only(&j, path, only, e);
	if (rc == -1) {
		free(path);
		return errno == ENOENT ? 0 : -1;
	}
	s = mr_json_str(j, "sha256", "");
	a->size = mr_json_int(j, "size", -1);
	ready = mr_json_get(j, "ready");
	if (strcmp(mr_json_str(j, "id", ""), id) != 0)
		rc = mr_fail(e, "%s: id is \"%.80s\", wanted %s", path,
		    mr_json_str(j, "id", ""), id);
	else if (!mr_oid_ok(s) || a->size <= 0)
		rc = mr_fail(e, "%s: wanted a size and a sha256", path);
	else if (strcmp(mr_json_str(j, "status", ""), "failed") != 0) {
		a->there = 1;
		memcpy(a->sha256, s, MR_HEX);
		a->parts = mr_json_len(mr_json_get(ready, "parts"));
		a->multipart = a->parts > 0 ||
		    mr_json_bool(j, "multipart", 0);
		s = mr_json_str(ready, "name", NULL);
		a->name = s != NULL ? mr_strdup(s) :
		    mr_fmt("%s_driving_tinygrad.pkl", id);
	}
	mr_json_free(j);
	free(path);
	return rc;
}

static int
by_name(const void *a, const void *b)
{
	const struct artifact *const *x = a, *const *y = b;

	return strcasecmp((*x)->name, (*y)->name);
}

/* Two artifacts with one file name must be the same bytes. */
int
check_names(const struct artifact *v, size_t n, struct mr_err *e)
{
	const struct artifact **sorted;
	size_t i, k = 0;
	int rc = 0;

	sorted = mr_malloc(n * sizeof(*sorted));
	for (i = 0; i < n; i++)
		if (v[i].there)
			sorted[k++] = &v[i];
	if (k > 0)
		qsort(sorted, k, sizeof(*sorted), by_name);
	for (i = 1; rc == 0 && i < k; i++)
		if (strcasecmp(sorted[i - 1]->name, sorted[i]->name) == 0 &&
		    strcmp(sorted[i - 1]->sha256, sorted[i]->sha256) != 0)
			rc = mr_fail(e, "%s: the file of both %s, sha256 %s, "
			    "and %s, sha256 %s: wanted a name for each",
			    sorted[i]->name, sorted[i - 1]->id,
			    sorted[i - 1]->sha256, sorted[i]->id,
			    sorted[i]->sha256);
	free(sorted);
	return rc;
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct artifact *)a)->id,
	    ((const struct artifact *)b)->id);
}

/* the entry of one set */
static struct mr_json
entry(const struct artifact *a)
{
	struct mr_json j, parts;
	char *name;
	size_t i;

	j = mr_json_object();
	mr_json_set_str(&j, "id", a->id);
	mr_json_set_str(&j, "filename", a->name);
	mr_json_set_int(&j, "size", (uint64_t)a->size);
	mr_json_set_str(&j, "sha256", a->sha256);
	parts = mr_json_array();
	for (i = 0; i < a->parts; i++) {
		name = mr_fmt("%s.p%02zu", a->name, i);
		mr_json_push(&parts, mr_json_string(name));
		free(name);
	}
	mr_json_set(&j, "parts", parts);
	return j;
}

char *
multipart(struct artifact *v, size_t n, size_t *len, struct mr_err *e)
{
	struct mr_json list;
	char *text = NULL;
	size_t i;
	int rc = 0;

	if (n > 0)
		qsort(v, n, sizeof(*v), by_id);
	list = mr_json_array();
	for (i = 0; rc == 0 && i < n; i++)
		if (v[i].there && v[i].multipart && v[i].parts == 0)
			rc = mr_fail(e, "%s: its record does not say which "
			    "parts it has: make ready/%s", v[i].id, v[i].id);
		else if (v[i].there && v[i].parts > 0)
			mr_json_push(&list, entry(&v[i]));
	if (rc == 0) {
		text = mr_json_dump(list, 2);
		*len = strlen(text);
		text[(*len)++] = '\n';	/* in place of its NUL */
	}
	mr_json_free(list);
	return text;
}
