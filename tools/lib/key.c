/* Keys: what a product was made from, as `name=value` lines. */
#include <stdlib.h>
#include <string.h>

#include "mr.h"

/* grows when the meaning of a line or the artifact's making changes */
static const char schema[] = "1";

/* where git-blob looks for sources; part of the fetch key */
static const char prefixes[] = "openpilot/selfdrive/modeld/models:"
    "selfdrive/modeld/models:frogpilot/tinygrad_modeld/models";

void
mr_key_init(struct mr_key *k)
{
	k->text = mr_strdup("");
	k->len = 0;
}

void
mr_key_free(struct mr_key *k)
{
	free(k->text);
	k->text = NULL;
}

void
mr_key_add(struct mr_key *k, const char *name, const char *value)
{
	size_t i, n, v;

	n = strlen(name);
	v = strlen(value);
	/* grown in steps: a key has some twenty lines */
	if (k->len == 0 || (k->len + 1) / 512 != (k->len + n + v + 3) / 512)
		k->text = mr_realloc(k->text,
		    ((k->len + n + v + 3) / 512 + 1) * 512);
	memcpy(k->text + k->len, name, n);
	k->text[k->len + n] = '=';
	memcpy(k->text + k->len + n + 1, value, v);
	/* one line each, whatever a device says of itself */
	for (i = k->len + n + 1; i < k->len + n + 1 + v; i++)
		if (k->text[i] == '\n')
			k->text[i] = ' ';
	k->len += n + v + 1;
	k->text[k->len++] = '\n';
	k->text[k->len] = '\0';
}

void
mr_key_digest(const struct mr_key *k, char hex[MR_HEX])
{
	mr_sha256_buf(k->text, k->len, hex);
}

void
mr_key_record(const struct mr_key *k, struct mr_json *record,
    const char *prefix)
{
	struct mr_json lines;
	char hex[MR_HEX], *copy, *name, *line, *end;

	mr_key_digest(k, hex);
	name = mr_fmt("%skey", prefix);
	mr_json_set_str(record, name, hex);
	free(name);
	lines = mr_json_array();
	copy = mr_strdup(k->text);
	for (line = copy; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		mr_json_push(&lines, mr_json_string(line));
	}
	free(copy);
	name = mr_fmt("%skey_lines", prefix);
	mr_json_set(record, name, lines);
	free(name);
}

/* the value of NAME (N bytes) in a record's lines, or NULL */
static const char *
recorded(struct mr_json lines, const char *name, size_t n)
{
	const char *s;
	size_t i;

	for (i = 0; i < mr_json_len(lines); i++) {
		s = mr_json_text(mr_json_at(lines, i));
		if (s != NULL && strncmp(s, name, n) == 0 && s[n] == '=')
			return s + n + 1;
	}
	return NULL;
}

char *
mr_key_diff(const struct mr_key *k, struct mr_json record, const char *prefix)
{
	struct mr_json lines;
	const char *line, *end, *eq, *was, *s;
	char *name;
	size_t i, n = 0;

	name = mr_fmt("%skey_lines", prefix);
	lines = mr_json_get(record, name);
	free(name);
	for (line = k->text; (end = strchr(line, '\n')) != NULL;
	    line = end + 1, n++) {
		eq = strchr(line, '=');
		was = recorded(lines, line, (size_t)(eq - line));
		if (was == NULL)
			return mr_fmt("%.*s: is %.*s, was not recorded",
			    (int)(eq - line), line, (int)(end - eq - 1),
			    eq + 1);
		if (strlen(was) != (size_t)(end - eq - 1) ||
		    memcmp(was, eq + 1, strlen(was)) != 0)
			return mr_fmt("%.*s: was %s, is %.*s",
			    (int)(eq - line), line, was,
			    (int)(end - eq - 1), eq + 1);
	}
	if (mr_json_len(lines) == n)
		return NULL;
	/* all of ours agree, so the record has a line that is no more */
	for (i = 0; i < mr_json_len(lines); i++) {
		s = mr_json_text(mr_json_at(lines, i));
		if (s == NULL || (eq = strchr(s, '=')) == NULL)
			continue;
		name = mr_fmt("\n%.*s=", (int)(eq - s), s);
		line = strstr(k->text, name + 1) == k->text ? k->text :
		    strstr(k->text, name);
		free(name);
		if (line == NULL)
			return mr_fmt("%.*s: was %s, is gone", (int)(eq - s),
			    s, eq + 1);
	}
	return mr_strdup("key_lines: malformed");
}

void
mr_key_fetch(struct mr_key *k, const char *format, int gpu, const char *ref)
{
	mr_key_init(k);
	mr_key_add(k, "paths", prefixes);
	mr_key_add(k, "format", format);
	mr_key_add(k, "gpu", gpu ? "1" : "0");
	mr_key_add(k, "commit", ref);
}

int
mr_key_device(struct mr_key *k, struct mr_json identity)
{
	static const char *const dumped[] = { "cameras", "environment" };
	/* what explains most comes first: the first difference is shown */
	static const char *const facts[] = {
		"tinygrad", "toolchain", "driver", "backend", "device",
		"python", "compiler", "image_history_pipeline"
	};
	char *text;
	size_t i;

	mr_key_init(k);
	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		mr_key_add(k, facts[i], mr_json_str(identity, facts[i], ""));
	for (i = 0; i < sizeof(dumped) / sizeof(dumped[0]); i++) {
		text = mr_json_dump(mr_json_get(identity, dumped[i]), 0);
		mr_key_add(k, dumped[i], text);
		free(text);
	}
	return mr_json_str(identity, "toolchain", "")[0] != '\0' ? 0 : -1;
}

void
mr_key_compile(struct mr_key *k, const char *format, const char *version,
    int gpu, struct mr_json source, const struct mr_key *device)
{
	struct mr_json files, f;
	size_t i;

	mr_key_init(k);
	mr_key_add(k, "schema", schema);
	mr_key_add(k, "format", format);
	mr_key_add(k, "version", version);
	mr_key_add(k, "gpu", gpu ? "1" : "0");
	files = mr_json_get(source, "files");
	for (i = 0; i < mr_json_len(files); i++) {
		f = mr_json_at(files, i);
		mr_key_add(k, mr_json_str(f, "component", "?"),
		    mr_json_str(f, "sha256", "?"));
	}
	k->text = mr_realloc(k->text, (k->len + device->len + 1) / 512 * 512 +
	    512);
	memcpy(k->text + k->len, device->text, device->len + 1);
	k->len += device->len;
}

void
mr_key_ready(struct mr_key *k, const char *sha256, uint64_t limit,
    uint64_t part)
{
	char *n;

	mr_key_init(k);
	mr_key_add(k, "artifact", sha256);
	n = mr_fmt("%llu", (unsigned long long)limit);
	mr_key_add(k, "limit", n);
	free(n);
	n = mr_fmt("%llu", (unsigned long long)part);
	mr_key_add(k, "part", n);
	free(n);
}
