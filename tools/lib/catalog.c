/* Source maps and manifests: which models there are; man/catalog.5. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mr.h"

/* a string with room for a quoted foreign word, cut and made printable */
struct shown {
	char	s[80];
};

static struct shown
show(const char *word)
{
	struct shown v;
	size_t i, n;

	n = strnlen(word, sizeof(v.s) - 1);
	for (i = 0; i < n; i++)
		v.s[i] = word[i] < 0x20 || word[i] > 0x7e ? '?' : word[i];
	v.s[n] = '\0';
	return v;
}

/* Is REMOTE a place to fetch from that no shell or make can misread? */
static int
check_remote(const char *remote, struct mr_err *e)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/@%+,=";

	if (remote == NULL)
		return mr_fail(e, "wanted a URL");
	if (remote[strspn(remote, plain)] != '\0')
		return mr_fail(e, "\"%s\": wanted a URL of letters, digits and "
		    "-._~:/@%%+,= alone", show(remote).s);
	return mr_git_url(remote, e);
}

/* one entry of a source map: id -> {ref, input_format, ...} */
static int
read_model(struct mr_model *m, const char *map, const char *id,
    struct mr_json v, int loose, struct mr_err *e)
{
	struct mr_err why;
	struct mr_json gpu;
	const char *s;

	if (!mr_id_ok(id))
		return mr_fail(e, "%s: model id \"%s\": wanted a letter or "
		    "digit, then letters, digits, '.', '_', '-', at most %d "
		    "in all", map, show(id).s, MR_ID_MAX);
	if (mr_json_type(v) != MR_JSON_OBJECT)
		return mr_fail(e, "%s: %s: wanted an object", map, id);
	m->id = id;
	m->map = map;
	m->ref = mr_json_str(v, "ref", NULL);
	if (m->ref == NULL)
		return mr_fail(e, "%s: %s: ref: wanted a string", map, id);
	if (!loose && !mr_ref_ok(m->ref))
		return mr_fail(e, "%s: %s: ref is \"%s\", wanted 40 hex "
		    "digits: make pin/%s resolves a branch", map, id,
		    show(m->ref).s, id);
	m->format = mr_json_str(v, "input_format", NULL);
	if (m->format == NULL || !mr_format_ok(m->format))
		return mr_fail(e, "%s: %s: input_format is \"%s\", wanted "
		    "split or supercombo", map, id,
		    show(m->format ? m->format : "").s);
	gpu = mr_json_get(v, "uses_external_gpu");
	if (mr_json_type(gpu) != MR_JSON_NONE &&
	    mr_json_bool(v, "uses_external_gpu", -1) == -1)
		return mr_fail(e, "%s: %s: uses_external_gpu: wanted true or "
		    "false", map, id);
	m->gpu = mr_json_bool(v, "uses_external_gpu", 0);
	m->gpu_said = mr_json_type(gpu) != MR_JSON_NONE;
	s = mr_json_str(v, "source_id", NULL);
	if (mr_json_type(mr_json_get(v, "source_id")) != MR_JSON_NONE &&
	    (s == NULL || !mr_id_ok(s)))
		return mr_fail(e, "%s: %s: source_id: wanted a model id", map,
		    id);
	m->remote = mr_json_str(v, "remote", NULL);
	if (mr_json_type(mr_json_get(v, "remote")) != MR_JSON_NONE &&
	    check_remote(m->remote, &why) == -1)
		return mr_fail(e, "%s: %s: remote: %.400s", map, id, why.text);
	return 0;
}

static int
read_map(struct mr_catalog *c, const char *map, int loose, struct mr_err *e)
{
	struct mr_json root, v;
	int i;

	if (mr_json_load(&root, map, e) == -1)
		return -1;
	c->roots = mr_realloc(c->roots, (c->nroots + 1) * sizeof(root));
	c->roots[c->nroots++] = root;
	if (mr_json_type(root) != MR_JSON_OBJECT)
		return mr_fail(e, "%s: wanted an object: model id -> source",
		    map);
	c->models = mr_realloc(c->models,
	    (c->n + mr_json_len(root)) * sizeof(*c->models));
	for (i = mr_json_first(root); i >= 0; i = mr_json_next(root, i)) {
		v = mr_json_val(root, i);
		memset(&c->models[c->n], 0, sizeof(*c->models));
		if (read_model(&c->models[c->n], map, mr_json_key(root, i), v,
		    loose, e) == -1)
			return -1;
		c->n++;
	}
	return 0;
}

/* order of ids without regard to case, as exFAT and macOS see names */
static int
by_id(const void *a, const void *b)
{
	const struct mr_model *const *x = a, *const *y = b;

	return strcasecmp((*x)->id, (*y)->id);
}

/* sorts pointers to all models by id */
static void
sort(struct mr_catalog *c)
{
	size_t i;

	c->sorted = mr_malloc(c->n * sizeof(*c->sorted));
	for (i = 0; i < c->n; i++)
		c->sorted[i] = &c->models[i];
	qsort(c->sorted, c->n, sizeof(*c->sorted), by_id);
}

/* the model named ID, or NULL */
static struct mr_model *
lookup(const struct mr_catalog *c, const char *id)
{
	struct mr_model key = { .id = id }, *k = &key, **hit;

	hit = bsearch(&k, c->sorted, c->n, sizeof(*c->sorted), by_id);
	return hit != NULL && strcmp((*hit)->id, id) == 0 ? *hit : NULL;
}

/* one entry of a manifest, and its place there, from 1 */
struct entry {
	const char	*id;
	struct mr_json	 v;
	size_t		 at;
};

static int
by_entry(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order;

	order = strcasecmp(x->id, y->id);
	return order != 0 ? order : x->at < y->at ? -1 : 1;
}

/* Refuses ids that are there twice; entries that are equal in every field
 * may be: published manifests have such. */
static int
check_twice(struct entry *v, size_t n, const char *path, struct mr_err *e)
{
	size_t i;

	qsort(v, n, sizeof(*v), by_entry);
	for (i = 1; i < n; i++)
		if (strcasecmp(v[i - 1].id, v[i].id) == 0 &&
		    !mr_json_equal(v[i - 1].v, v[i].v))
			return mr_fail(e, "%s: entries %zu and %zu are %s and "
			    "%s, and differ: wanted each id once", path,
			    v[i - 1].at, v[i].at, v[i - 1].id, v[i].id);
	return 0;
}

/* checks one entry of a manifest */
static int
read_entry(struct entry *v, struct mr_json j, size_t at, const char *path,
    struct mr_err *e)
{
	const char *version;

	v->id = mr_json_str(j, "id", NULL);
	v->v = j;
	v->at = at;
	if (v->id == NULL || !mr_id_ok(v->id))
		return mr_fail(e, "%s: entry %zu: id is \"%s\", wanted a model "
		    "id", path, at, show(v->id ? v->id : "").s);
	version = mr_json_str(j, "version", NULL);
	if (version == NULL || !mr_version_ok(version))
		return mr_fail(e, "%s: %s: version is \"%s\", wanted v and 1 "
		    "to 4 digits", path, v->id, show(version ? version : "").s);
	return 0;
}

/* takes versions out of one manifest: {"models": [...]} or a bare list */
static int
read_manifest(struct mr_catalog *c, const char *path, struct mr_err *e)
{
	struct mr_json root, list;
	struct mr_model *m;
	struct entry *v;
	size_t i, n;
	int rc = 0;

	if (mr_json_load(&root, path, e) == -1)
		return -1;
	c->roots = mr_realloc(c->roots, (c->nroots + 1) * sizeof(root));
	c->roots[c->nroots++] = root;
	list = mr_json_type(root) == MR_JSON_ARRAY ? root :
	    mr_json_get(root, "models");
	if (mr_json_type(list) != MR_JSON_ARRAY)
		return mr_fail(e, "%s: wanted {\"models\": [...]} or a list",
		    path);
	n = mr_json_len(list);
	v = mr_malloc(n * sizeof(*v));
	for (i = 0; rc == 0 && i < n; i++)
		rc = read_entry(&v[i], mr_json_at(list, i), i + 1, path, e);
	if (rc == 0)
		rc = check_twice(v, n, path, e);
	for (i = 0; rc == 0 && i < n; i++) {
		m = lookup(c, v[i].id);
		if (m != NULL && m->version == NULL)
			m->version = mr_json_str(v[i].v, "version", NULL);
	}
	free(v);
	return rc;
}

int
mr_catalog_load(struct mr_catalog *c, char *const maps[],
    char *const manifests[], int loose, struct mr_err *e)
{
	struct mr_model **v;
	size_t i;
	int rc = 0;

	memset(c, 0, sizeof(*c));
	for (i = 0; rc == 0 && maps[i] != NULL; i++)
		rc = read_map(c, maps[i], loose, e);
	sort(c);
	v = c->sorted;
	for (i = 1; rc == 0 && i < c->n; i++)
		if (strcasecmp(v[i - 1]->id, v[i]->id) == 0)
			rc = mr_fail(e, "%s: model %s is also in %s as %s: "
			    "ids must differ in more than case",
			    v[i]->map, v[i]->id, v[i - 1]->map, v[i - 1]->id);
	for (i = 0; rc == 0 && manifests[i] != NULL; i++)
		rc = read_manifest(c, manifests[i], e);
	if (rc == -1)
		mr_catalog_free(c);
	return rc;
}

const struct mr_model *
mr_catalog_find(const struct mr_catalog *c, const char *id)
{
	return lookup(c, id);
}

void
mr_catalog_free(struct mr_catalog *c)
{
	size_t i;

	for (i = 0; i < c->nroots; i++)
		mr_json_free(c->roots[i]);
	free(c->roots);
	free(c->models);
	free(c->sorted);
	memset(c, 0, sizeof(*c));
}
