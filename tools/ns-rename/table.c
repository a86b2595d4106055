/* Reconciling: a table of ids, and entries that a release has besides. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ns-rename.h"

void
table_free(struct table *t)
{
	if (mr_json_type(t->root) == MR_JSON_OBJECT)
		mr_manifest_free(&t->add);
	mr_json_free(t->root);
}

int
table_load(struct table *t, const char *path, struct mr_err *e)
{
	const char *to;
	int i, rc = 0;

	memset(t, 0, sizeof(*t));
	t->root = mr_json_null();
	if (path == NULL)
		return 0;
	if (mr_manifest_load(&t->add, path, e) == -1)
		return -1;
	if (mr_json_load(&t->root, path, e) == -1) {
		mr_manifest_free(&t->add);
		return -1;
	}
	t->rename = mr_json_get(t->root, "rename");
	t->after = mr_json_str(t->root, "after", "");
	if (mr_json_type(t->rename) != MR_JSON_OBJECT)
		rc = mr_fail(e, "%s: rename: wanted an object: id -> new id",
		    path);
	for (i = mr_json_first(t->rename); rc == 0 && i >= 0;
	    i = mr_json_next(t->rename, i)) {
		to = mr_json_text(mr_json_val(t->rename, i));
		if (!mr_id_ok(mr_json_key(t->rename, i)) || to == NULL ||
		    !mr_id_ok(to))
			rc = mr_fail(e, "%s: rename: wanted model ids alone",
			    path);
	}
	if (rc == -1)
		table_free(t);
	return rc;
}

static struct mr_entry *
find(const struct mr_manifest *m, const char *id)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (strcmp(m->entry[i].id, id) == 0)
			return &m->entry[i];
	return NULL;
}

/* takes the entry AT out of M */
static struct mr_entry
cut(struct mr_manifest *m, struct mr_entry *at)
{
	struct mr_entry v = *at;

	m->n--;
	memmove(at, at + 1, (size_t)(&m->entry[m->n] - at) * sizeof(v));
	return v;
}

/* Does the folder hold anything of the upload set of ID? */
static int
has_files(const char *dir, const char *id)
{
	static const char *const ends[] = { "", ".p00", ".sha256" };
	char *path;
	size_t i;
	int rc = 0;

	for (i = 0; dir != NULL && rc == 0 && i < 3; i++) {
		path = mr_fmt("%s/%s_driving_tinygrad.pkl%s", dir, id,
		    ends[i]);
		rc = access(path, F_OK) == 0;
		free(path);
	}
	return rc;
}

/* An id that is old and new in the table: which is it, if the one that would
 * become it is nowhere? */
static int
check_open(const struct table *t, const struct mr_manifest *m, const char *id,
    const char *dir, struct mr_err *e)
{
	const char *from;
	int i;

	if (find(m, id) == NULL && !has_files(dir, id))
		return 0;
	for (i = mr_json_first(t->rename); i >= 0;
	    i = mr_json_next(t->rename, i)) {
		from = mr_json_key(t->rename, i);
		if (strcmp(mr_json_text(mr_json_val(t->rename, i)), id) == 0 &&
		    find(m, from) == NULL && !has_files(dir, from))
			return mr_fail(e, "%s: may be %s, renamed already: "
			    "name the ids that are to be renamed with --only",
			    id, from);
	}
	return 0;
}

/* Entries under both names are one if they are equal. */
static int
merge(struct mr_manifest *m, const char *old, const char *new,
    struct mr_err *e)
{
	struct mr_entry *a, *b, c;

	a = find(m, old);
	b = find(m, new);
	if (a == NULL || b == NULL)
		return 0;
	c = *a;
	memcpy(c.id, new, strlen(new) + 1);
	if (!mr_entry_same(&c, b))
		return mr_fail(e, "%s: entry %zu is %s and entry %zu is %s, "
		    "and they differ: wanted one", m->path, a->at, old, b->at,
		    new);
	c = cut(m, a);
	free(c.member);
	return 0;
}

static int
named(char *const only[], const char *id)
{
	if (*only == NULL)
		return 1;
	for (; *only != NULL; only++)
		if (strcmp(*only, id) == 0)
			return 1;
	return 0;
}

/* Is ID one that the plan, so far, renames or makes? */
static int
planned(const struct plan *p, size_t n, const char *id)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(p->pair[i].old, id) == 0 ||
		    strcmp(p->pair[i].new, id) == 0)
			return 1;
	return 0;
}

int
table_plan(const struct table *t, struct plan *p, struct mr_manifest *m,
    char *const only[], const char *dir, struct mr_err *e)
{
	const char *old, *new, *next;
	size_t i, n;
	int k;

	for (k = mr_json_first(t->rename); k >= 0;
	    k = mr_json_next(t->rename, k)) {
		old = mr_json_key(t->rename, k);
		new = mr_json_text(mr_json_val(t->rename, k));
		if (!named(only, old))
			continue;
		if (*only == NULL && check_open(t, m, old, dir, e) == -1)
			return -1;
		next = mr_json_str(t->rename, new, NULL);
		if ((next == NULL || !named(only, new)) &&
		    merge(m, old, new, e) == -1)
			return -1;
		if (plan_add(p, old, new, e) == -1)
			return -1;
	}
	for (i = 0, n = p->npairs; i < m->n; i++)
		if (!planned(p, n, m->entry[i].id) &&
		    plan_add(p, m->entry[i].id, m->entry[i].id, e) == -1)
			return -1;
	return 0;
}

/* Will the folder hold the artifact of a new id? */
static int
will_have(const struct plan *p, const char *id, const char *dir)
{
	size_t i;

	if (dir == NULL)
		return 1;
	for (i = 0; i < p->npairs; i++)
		if (strcmp(p->pair[i].new, id) == 0 &&
		    (p->pair[i].nfiles > 0 || p->pair[i].done))
			return 1;
	return has_files(dir, id);
}

void
table_add(const struct table *t, const struct plan *p, struct mr_manifest *m,
    const char *dir)
{
	struct mr_entry *v, *after, moved;
	size_t i, at;

	if (mr_json_type(t->root) != MR_JSON_OBJECT)
		return;
	for (i = 0; i < t->add.n; i++) {
		v = find(m, t->add.entry[i].id);
		moved = v != NULL ? *v : t->add.entry[i];
		after = find(m, t->after);
		if (v == NULL && !will_have(p, moved.id, dir))
			continue;
		if (v != NULL && after == NULL)
			continue;	/* it may stay where it is */
		if (v != NULL)
			cut(m, v);
		after = find(m, t->after);
		at = after != NULL ? (size_t)(after - m->entry) + 1 : m->n;
		mr_manifest_add(m, at, &moved);
		if (v != NULL)
			free(moved.member);
	}
}
