/* The artifact's record, and the list of all sets of a folder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mr.h"
#include "split.h"

int
record_load(struct mr_json *record, const char *path, char hex[MR_HEX],
    int64_t *size, struct mr_err *e)
{
	const char *s;

	if (mr_json_load(record, path, e) == -1)
		return -1;
	s = mr_json_str(*record, "sha256", "");
	*size = mr_json_int(*record, "size", -1);
	if (!mr_oid_ok(s)) {
		mr_fail(e, "%s: sha256 is \"%.80s\", wanted 64 hex digits",
		    path, s);
		mr_json_free(*record);
		return -1;
	}
	memcpy(hex, s, MR_HEX);
	return 0;
}

int
record_stale(struct mr_json *record, const char *path, struct mr_err *e)
{
	if (mr_json_type(mr_json_get(*record, "ready")) == MR_JSON_NONE)
		return 0;
	mr_json_del(record, "ready");
	return mr_json_save(*record, path, e);
}

/* this set's entry in multipart.json */
static struct mr_json
entry(const struct set *s, const char *id, const char *hex)
{
	struct mr_json j, parts;
	char *name;
	size_t i;

	j = mr_json_object();
	mr_json_set_str(&j, "id", id);
	mr_json_set_str(&j, "filename", s->name);
	mr_json_set_int(&j, "size", s->size);
	mr_json_set_str(&j, "sha256", hex);
	parts = mr_json_array();
	for (i = 0; i < s->n; i++) {
		name = set_part(s, i);
		mr_json_push(&parts, mr_json_string(name));
		free(name);
	}
	mr_json_set(&j, "parts", parts);
	return j;
}

/* WAS with the entry of this set put where its id belongs, or left out. */
static struct mr_json
merge(struct mr_json was, const struct set *s, const char *id,
    const char *hex)
{
	struct mr_json is, j;
	int placed, order;
	size_t i;

	is = mr_json_array();
	placed = s->n == 0;
	for (i = 0; i < mr_json_len(was); i++) {
		j = mr_json_at(was, i);
		order = strcmp(mr_json_str(j, "id", ""), id);
		if (!placed && order >= 0) {
			mr_json_push(&is, entry(s, id, hex));
			placed = 1;
		}
		if (order != 0)
			mr_json_push(&is, mr_json_copy(j));
	}
	if (!placed)
		mr_json_push(&is, entry(s, id, hex));
	return is;
}

/* Loads the list, empty where there is none. */
static int
load_list(struct mr_json *list, const char *path, struct mr_err *e)
{
	if (mr_json_load(list, path, e) == -1) {
		if (errno != ENOENT)
			return -1;
		*list = mr_json_array();
	}
	if (mr_json_type(*list) == MR_JSON_ARRAY)
		return 0;
	mr_json_free(*list);
	return mr_fail(e, "%s: wanted a list of sets", path);
}

int
record_multipart(const struct set *s, const char *id, const char *hex,
    struct mr_err *e)
{
	struct mr_json was, is;
	char *path, *text, *line;
	struct mr_out o;
	int rc;

	path = mr_fmt("%s/multipart.json", s->dir);
	rc = mr_out_open(&o, path, e);
	if (rc == 0) {
		rc = load_list(&was, path, e);
		if (rc == 0) {
			is = merge(was, s, id, hex);
			text = mr_json_dump(is, 2);
			line = mr_fmt("%s\n", text);
			rc = mr_write(o.fd, line, strlen(line));
			if (rc == -1)
				mr_fail(e, "%s: %s", o.tmp, strerror(errno));
			else
				rc = mr_out_commit(&o, e);
			free(line);
			free(text);
			mr_json_free(is);
			mr_json_free(was);
		}
		mr_out_abort(&o);
	}
	free(path);
	return rc;
}

int
record_ready(struct mr_json *record, const char *path, const struct set *s,
    const char *hex, uint64_t limit, struct mr_err *e)
{
	struct mr_json ready, parts, part;
	struct mr_key k;
	char *name;
	size_t i;

	ready = mr_json_object();
	mr_json_set_str(&ready, "name", s->name);
	parts = mr_json_array();
	for (i = 0; i < s->n; i++) {
		part = mr_json_object();
		name = set_part(s, i);
		mr_json_set_str(&part, "name", name);
		free(name);
		mr_json_set_int(&part, "size", set_size(s, i));
		mr_json_push(&parts, part);
	}
	mr_json_set(&ready, "parts", parts);
	mr_key_ready(&k, hex, limit, s->part);
	mr_key_record(&k, &ready, "");
	mr_key_free(&k);
	mr_json_set(record, "ready", ready);
	mr_json_set_bool(record, "multipart", s->n > 0);
	return mr_json_save(*record, path, e);
}
