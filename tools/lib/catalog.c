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
	size_t i;

	for (i = 0; word[i] != '\0' && i < sizeof(v.s) - 1; i++)
		v.s[i] = (unsigned char)word[i] < 0x20 || word[i] == 0x7f ?
		    '?' : word[i];
	v.s[i] = '\0';
	return v;
}

/* one entry of a source map: id -> {ref, input_format, ...} */
static int
read_model(struct mr_model *m, const char *map, const char *id,
    struct mr_json v, int loose, struct mr_err *e)
{
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
	s = mr_json_str(v, "source_id", NULL);
	if (mr_json_type(mr_json_get(v, "source_id")) != MR_JSON_NONE &&
	    (s == NULL || !mr_id_ok(s)))
		return mr_fail(e, "%s: %s: source_id: wanted a model id", map,
		    id);
	m->remote = mr_json_str(v, "remote", NULL);
	if (mr_json_type(mr_json_get(v, "remote")) != MR_JSON_NONE &&
	    (m->remote == NULL || m->remote[0] == '\0' ||
	    m->remote[0] == '-' ||
	    strpbrk(m->remote, " \t\r\n'\"\\$`;&|<>()#") != NULL))
		return mr_fail(e, "%s: %s: remote: wanted a URL without "
		    "blanks or quotes", map, id);
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

/* pointers to all models, sorted by id; the caller frees */
static struct mr_model **
sorted(const struct mr_catalog *c)
{
	struct mr_model **v;
	size_t i;

	v = mr_malloc(c->n * sizeof(*v));
	for (i = 0; i < c->n; i++)
		v[i] = &c->models[i];
	qsort(v, c->n, sizeof(*v), by_id);
	return v;
}

/* the model named ID in V, which is sorted, or NULL */
static struct mr_model *
lookup(struct mr_model **v, size_t n, const char *id)
{
	struct mr_model key = { .id = id }, *k = &key, **hit;

	hit = bsearch(&k, v, n, sizeof(*v), by_id);
	return hit != NULL && strcmp((*hit)->id, id) == 0 ? *hit : NULL;
}

/* takes versions out of one manifest: {"models": [...]} or a bare list */
static int
read_manifest(struct mr_catalog *c, struct mr_model **v, const char *path,
    struct mr_err *e)
{
	struct mr_json root, list, entry;
	struct mr_model *m;
	const char *id, *version;
	size_t i;

	if (mr_json_load(&root, path, e) == -1)
		return -1;
	c->roots = mr_realloc(c->roots, (c->nroots + 1) * sizeof(root));
	c->roots[c->nroots++] = root;
	list = mr_json_type(root) == MR_JSON_ARRAY ? root :
	    mr_json_get(root, "models");
	if (mr_json_type(list) != MR_JSON_ARRAY)
		return mr_fail(e, "%s: wanted {\"models\": [...]} or a list",
		    path);
	for (i = 0; i < mr_json_len(list); i++) {
		entry = mr_json_at(list, i);
		id = mr_json_str(entry, "id", NULL);
		if (id == NULL || !mr_id_ok(id))
			return mr_fail(e, "%s: entry %zu: id is \"%s\", "
			    "wanted a model id", path, i + 1,
			    show(id ? id : "").s);
		version = mr_json_str(entry, "version", NULL);
		if (version == NULL || !mr_version_ok(version))
			return mr_fail(e, "%s: %s: version is \"%s\", wanted "
			    "v and 1 to 4 digits", path, id,
			    show(version ? version : "").s);
		m = lookup(v, c->n, id);
		if (m != NULL && m->version == NULL)
			m->version = version;
	}
	return 0;
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
	v = sorted(c);
	for (i = 1; rc == 0 && i < c->n; i++)
		if (strcasecmp(v[i - 1]->id, v[i]->id) == 0)
			rc = mr_fail(e, "%s: model %s is also in %s as %s: "
			    "ids must differ in more than case",
			    v[i]->map, v[i]->id, v[i - 1]->map, v[i - 1]->id);
	for (i = 0; rc == 0 && manifests[i] != NULL; i++)
		rc = read_manifest(c, v, manifests[i], e);
	free(v);
	if (rc == -1)
		mr_catalog_free(c);
	return rc;
}

const struct mr_model *
mr_catalog_find(const struct mr_catalog *c, const char *id)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (strcmp(c->models[i].id, id) == 0)
			return &c->models[i];
	return NULL;
}

void
mr_catalog_free(struct mr_catalog *c)
{
	size_t i;

	for (i = 0; i < c->nroots; i++)
		mr_json_free(c->roots[i]);
	free(c->roots);
	free(c->models);
	memset(c, 0, sizeof(*c));
}
