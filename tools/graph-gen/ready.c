/* The upload sets: files, stale parts, and multipart.json against a record. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "graph-gen.h"

#define FOLDER "ready-for-resources"
static const char suffix[] = "_driving_tinygrad.pkl";

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct multi *)a)->id,
	    ((const struct multi *)b)->id);
}

/* collects the names of all files, in one reading of the folder */
static void
load_names(struct ready *r)
{
	struct dirent *d;
	size_t cap = 0;
	DIR *dir;

	dir = opendir(FOLDER);
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.')
			continue;	/* litter, and what is being written */
		if (r->nnames == cap) {
			cap = cap ? cap * 2 : 64;
			r->name = mr_realloc(r->name, cap * sizeof(*r->name));
		}
		r->name[r->nnames++] = mr_strdup(d->d_name);
	}
	if (dir != NULL)
		closedir(dir);
	if (r->nnames > 0)
		qsort(r->name, r->nnames, sizeof(*r->name), by_name);
}

/* one entry; the name of every part follows from the id */
static void
load_multi(struct multi *m, struct mr_json entry)
{
	struct mr_json parts;
	char name[128];
	size_t i;

	m->id = mr_json_str(entry, "id", "");
	m->sha256 = mr_json_str(entry, "sha256", "");
	m->size = mr_json_int(entry, "size", -1);
	parts = mr_json_get(entry, "parts");
	m->parts = mr_json_len(parts);
	snprintf(name, sizeof(name), "%s%s", m->id, suffix);
	m->odd = mr_json_type(parts) != MR_JSON_ARRAY ||
	    strcmp(mr_json_str(entry, "filename", ""), name) != 0;
	for (i = 0; i < m->parts && !m->odd; i++) {
		snprintf(name, sizeof(name), "%s%s.p%02zu", m->id, suffix, i);
		m->odd = mr_json_text(mr_json_at(parts, i)) == NULL ||
		    strcmp(mr_json_text(mr_json_at(parts, i)), name) != 0;
	}
}

void
ready_load(struct ready *r)
{
	struct mr_err e;
	size_t i;

	memset(r, 0, sizeof(*r));
	load_names(r);
	if (mr_json_load(&r->root, FOLDER "/multipart.json", &e) == -1) {
		r->root = mr_json_null();
		return;
	}
	if (mr_json_type(r->root) != MR_JSON_ARRAY)
		return;
	r->listed = 1;
	r->nmulti = mr_json_len(r->root);
	r->multi = mr_malloc(r->nmulti * sizeof(*r->multi));
	for (i = 0; i < r->nmulti; i++)
		load_multi(&r->multi[i], mr_json_at(r->root, i));
	qsort(r->multi, r->nmulti, sizeof(*r->multi), by_id);
	for (i = 1; i < r->nmulti; i++)
		if (by_id(&r->multi[i - 1], &r->multi[i]) == 0)
			r->multi[i - 1].odd = r->multi[i].odd = 1;
}

void
ready_free(struct ready *r)
{
	size_t i;

	for (i = 0; i < r->nnames; i++)
		free(r->name[i]);
	free(r->name);
	free(r->multi);
	mr_json_free(r->root);
}

/* why multipart.json does not say of ID what its record says, or NULL */
static char *
check_multi(const struct ready *r, const char *id, struct mr_json record,
    size_t parts)
{
	struct multi key = { .id = id };
	const struct multi *m = NULL;

	if (!r->listed)
		return mr_strdup("multipart.json: missing");
	if (r->nmulti > 0)
		m = bsearch(&key, r->multi, r->nmulti, sizeof(*m), by_id);
	if (m == NULL)
		return parts == 0 ? NULL :
		    mr_strdup("multipart.json: has no entry");
	if (m->parts != parts || parts == 0)
		return mr_fmt("multipart.json: lists %zu parts, wanted %zu",
		    m->parts, parts);
	if (m->odd || m->size != mr_json_int(record, "size", -2) ||
	    strcmp(m->sha256, mr_json_str(record, "sha256", "?")) != 0)
		return mr_strdup("multipart.json: its entry is not of this "
		    "artifact");
	return NULL;
}

/* the first of the sorted names that is not before NAME */
static size_t
lower_bound(const struct ready *r, const char *name)
{
	size_t low = 0, high = r->nnames, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (strcmp(r->name[mid], name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* is the file BASE, with what follows it, in the folder? */
static int
is_there(const struct ready *r, const char *base, const char *after)
{
	char name[160];
	size_t i;

	snprintf(name, sizeof(name), "%s%s", base, after);
	i = lower_bound(r, name);
	return i < r->nnames && strcmp(r->name[i], name) == 0;
}

/* Why a part of the set BASE lies there that is not one of the first N, or
 * NULL. Parts are what pkl-split makes and removes: .p and 2 to 9 digits. */
static char *
stale_part(const struct ready *r, const char *base, size_t n)
{
	char name[160];
	const char *p;
	size_t i, len, digits;

	len = (size_t)snprintf(name, sizeof(name), "%s.p", base);
	for (i = lower_bound(r, name); i < r->nnames &&
	    strncmp(r->name[i], name, len) == 0; i++) {
		p = r->name[i] + len;
		digits = strspn(p, "0123456789");
		if (p[digits] == '\0' && digits >= 2 && digits <= 9 &&
		    (digits > 2 || strtoul(p, NULL, 10) >= n))
			return mr_fmt(FOLDER "/%s: stale", r->name[i]);
	}
	return NULL;
}

/* why the parts are not those of the record, or NULL */
static char *
check_parts(const char *base, struct mr_json parts)
{
	struct mr_json p;
	char path[200], *why = NULL;
	size_t i;

	for (i = 0; why == NULL && i < mr_json_len(parts); i++) {
		p = mr_json_at(parts, i);
		snprintf(path, sizeof(path), FOLDER "/%s.p%02zu", base, i);
		if (i > 99 || strcmp(mr_json_str(p, "name", ""),
		    path + sizeof(FOLDER)) != 0)
			return mr_fmt("parts: number %zu is \"%.80s\", wanted "
			    "%s.p%02zu", i, mr_json_str(p, "name", ""), base,
			    i);
		why = check_file(path, mr_json_int(p, "size", -1));
	}
	return why;
}

char *
ready_check(const struct ready *r, const char *id, struct mr_json record)
{
	struct mr_json parts;
	char base[128], path[200], *why;
	size_t n;

	parts = mr_json_get(mr_json_get(record, "ready"), "parts");
	if (mr_json_type(parts) != MR_JSON_ARRAY)
		return mr_strdup("parts: wanted a list");
	n = mr_json_len(parts);
	snprintf(base, sizeof(base), "%s%s", id, suffix);
	why = check_parts(base, parts);
	snprintf(path, sizeof(path), FOLDER "/%s", base);
	if (why == NULL && n == 0)
		why = check_file(path, mr_json_int(record, "size", -1));
	else if (why == NULL && is_there(r, base, ""))
		why = mr_fmt("%s: stands beside its parts", path);
	/* the marker of a set, and the parts that must not be there */
	if (why == NULL && is_there(r, base, ".sha256") != (n > 0))
		why = mr_fmt("%s.sha256: %s", path, n > 0 ? "missing" :
		    "stale");
	if (why == NULL)
		why = stale_part(r, base, n);
	if (why == NULL)
		why = check_multi(r, id, record, n);
	return why;
}
