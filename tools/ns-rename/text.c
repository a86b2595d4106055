/* The files that hold names: .sha256 and multipart.json. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ns-rename.h"

char *
text_marker(const char *dir, const char *from, const char *to,
    struct mr_err *e)
{
	char *path, *text, hex[MR_HEX], *line = NULL;
	size_t n, whole;

	path = mr_fmt("%s/%s", dir, from);
	text = mr_slurp(path, 1024, &n, e);
	whole = strlen(from) - strlen(".sha256");
	if (text != NULL) {
		memcpy(hex, text, n < 64 ? n : 64);
		hex[n < 64 ? n : 64] = '\0';
		/* two blanks, or blank and star, as sha256sum writes them */
		if (!mr_oid_ok(hex) || n != 67 + whole || text[64] != ' ' ||
		    (text[65] != ' ' && text[65] != '*') ||
		    strncmp(text + 66, from, whole) != 0 ||
		    text[66 + whole] != '\n')
			mr_fail(e, "%s: wanted 64 hex digits, two blanks and "
			    "%.*s", path, (int)whole, from);
		else
			line = mr_fmt("%s  %.*s\n", hex, (int)(strlen(to) -
			    strlen(".sha256")), to);
	}
	free(text);
	free(path);
	return line;
}

/* NAME, which begins with the old id, under the new one; the caller frees */
static char *
renamed(const struct plan *p, const char *name)
{
	char id[MR_ID_MAX + 1];
	const struct pair *v;
	const char *rest;

	rest = scan_id(name, id);
	v = rest != NULL ? plan_find(p, id) : NULL;
	return v != NULL && !v->done ? mr_fmt("%s%s", v->new, rest) :
	    mr_strdup(name);
}

/* one entry of multipart.json under its new name */
static struct mr_json
remap(const struct plan *p, struct mr_json entry, const struct pair *v)
{
	struct mr_json j, parts, list;
	char *name;
	size_t i;

	j = mr_json_copy(entry);
	if (v == NULL || v->done)
		return j;
	mr_json_set_str(&j, "id", v->new);
	name = renamed(p, mr_json_str(entry, "filename", ""));
	mr_json_set_str(&j, "filename", name);
	free(name);
	parts = mr_json_get(entry, "parts");
	list = mr_json_array();
	for (i = 0; i < mr_json_len(parts); i++) {
		name = renamed(p, mr_json_text(mr_json_at(parts, i)));
		mr_json_push(&list, mr_json_string(name));
		free(name);
	}
	mr_json_set(&j, "parts", list);
	return j;
}

/* Is ENTRY what pkl-split writes: do its names begin with its id? */
static int
check(struct mr_json entry)
{
	char id[MR_ID_MAX + 1];
	struct mr_json parts;
	const char *want, *name, *rest;
	size_t i;

	want = mr_json_str(entry, "id", "");
	name = mr_json_str(entry, "filename", "");
	rest = scan_id(name, id);
	if (rest == NULL || strcmp(id, want) != 0)
		return -1;
	parts = mr_json_get(entry, "parts");
	if (mr_json_type(parts) != MR_JSON_ARRAY)
		return -1;
	for (i = 0; i < mr_json_len(parts); i++) {
		name = mr_json_text(mr_json_at(parts, i));
		if (name == NULL || scan_id(name, id) == NULL ||
		    strcmp(id, want) != 0)
			return -1;
	}
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(mr_json_str(*(const struct mr_json *)a, "id", ""),
	    mr_json_str(*(const struct mr_json *)b, "id", ""));
}

/* the list with new names, in the order of ids */
static int
remap_all(const struct plan *p, struct mr_json was, int only,
    struct mr_json *is, const char *path, struct mr_err *e)
{
	const struct pair *v;
	struct mr_json *list;
	size_t i, n = 0;
	int rc = 0;

	if (mr_json_type(was) != MR_JSON_ARRAY)
		return mr_fail(e, "%s: wanted a list of sets", path);
	list = mr_malloc(mr_json_len(was) * sizeof(*list));
	for (i = 0; rc == 0 && i < mr_json_len(was); i++) {
		if (check(mr_json_at(was, i)) == -1) {
			rc = mr_fail(e, "%s: entry %zu: wanted an id, and a "
			    "filename and parts that begin with it", path,
			    i + 1);
			break;
		}
		v = plan_find(p, mr_json_str(mr_json_at(was, i), "id", ""));
		if (v != NULL || !only)
			list[n++] = remap(p, mr_json_at(was, i), v);
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), by_id);
	*is = mr_json_array();
	for (i = 0; i < n; i++)
		mr_json_push(is, list[i]);
	free(list);
	if (rc == -1)
		mr_json_free(*is);
	return rc;
}

char *
text_multipart(const char *dir, const struct plan *p, int only,
    struct mr_err *e)
{
	struct mr_json was, is;
	char *path, *text = NULL, *dump;

	e->text[0] = '\0';
	path = mr_fmt("%s/multipart.json", dir);
	if (mr_json_load(&was, path, e) == -1) {
		if (errno == ENOENT)
			e->text[0] = '\0';
	} else {
		if (remap_all(p, was, only, &is, path, e) == 0) {
			dump = mr_json_dump(is, 2);
			text = mr_fmt("%s\n", dump);
			free(dump);
			mr_json_free(is);
		}
		mr_json_free(was);
	}
	free(path);
	return text;
}

int
text_put(const char *dir, const char *name, const char *text,
    struct mr_err *e)
{
	struct mr_out out;
	char *path;
	int rc;

	path = mr_fmt("%s/%s", dir, name);
	rc = mr_out_open(&out, path, e);
	free(path);
	if (rc == -1)
		return -1;
	if (mr_write(out.fd, text, strlen(text)) == 0)
		return mr_out_commit(&out, e);
	rc = mr_fail(e, "%s: write: %s", out.tmp, strerror(errno));
	mr_out_abort(&out);
	return rc;
}
