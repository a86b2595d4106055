/* JSON by libjq, which only ever sees text that jsoncheck.c has passed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jv.h>

#include "mr.h"

_Static_assert(sizeof(jv) == sizeof(struct mr_json), "a jv is two words");

/* jv and mr_json are the same 16 bytes under two names */
static jv
in(struct mr_json j)
{
	jv v;

	memcpy(&v, &j, sizeof(v));
	return v;
}

static struct mr_json
outw(jv v)
{
	struct mr_json j;

	memcpy(&j, &v, sizeof(j));
	return j;
}

/* where the string that begins at P ends */
static const char *
string_end(const char *p)
{
	for (p++; *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p + 1;
}

/* where the value that begins at P ends: at its parent's comma or bracket */
static const char *
value_end(const char *p)
{
	size_t depth = 0;

	for (;; p++) {
		if (*p == '"')
			p = string_end(p) - 1;
		else if (*p == '{' || *p == '[')
			depth++;
		else if (depth == 0 && (*p == ',' || *p == '}' || *p == ']'))
			return p;
		else if (*p == '}' || *p == ']')
			depth--;
	}
}

/* Is the string (N bytes, its quotes too) in the list? One with an escape may
 * be: it is kept. */
static int
is_in(const char *string, size_t n, const char *const list[])
{
	if (memchr(string, '\\', n) != NULL)
		return 1;
	for (; *list != NULL; list++)
		if (strlen(*list) + 2 == n &&
		    memcmp(string + 1, *list, n - 2) == 0)
			return 1;
	return 0;
}

/* Checked text without the blanks, and without members that are not in ONLY
 * (NULL: all are): libjq takes each byte its time. The caller frees. */
static char *
squeeze(const char *buf, size_t n, const char *const only[], size_t *len)
{
	const char *p, *end = buf + n, *q, *colon;
	char *text, *t;

	text = t = mr_malloc(n);
	for (p = buf; p < end; p = q) {
		q = p + 1;
		if (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
			continue;
		if (*p == '"') {
			q = string_end(p);
			for (colon = q; only != NULL && colon < end &&
			    *colon != ':' && *colon <= ' '; colon++)
				;
			if (only != NULL && colon < end && *colon == ':' &&
			    !is_in(p, (size_t)(q - p), only)) {
				q = value_end(colon);
				if (*q == ',')
					q++;
				else if (t[-1] == ',')
					t--;
				continue;
			}
		}
		memcpy(t, p, (size_t)(q - p));
		t += q - p;
	}
	*len = (size_t)(t - text);
	return text;
}

static int
parse(struct mr_json *j, const char *buf, size_t n,
    const char *const only[], struct mr_err *e)
{
	char *text;
	size_t len;
	jv v;

	if (mr_json_check(buf, n, e) == -1)
		return -1;
	text = squeeze(buf, n, only, &len);
	v = jv_parse_sized(text, (int)len);
	free(text);
	if (jv_is_valid(v)) {
		*j = outw(v);
		return 0;
	}
	jv_free(v);
	return mr_fail(e, "not JSON that libjq reads");
}

int
mr_json_parse(struct mr_json *j, const char *buf, size_t n, struct mr_err *e)
{
	return parse(j, buf, n, NULL, e);
}

int
mr_json_load_only(struct mr_json *j, const char *path,
    const char *const only[], struct mr_err *e)
{
	struct mr_err why;
	size_t n;
	char *buf;
	int rc;

	buf = mr_slurp(path, MR_JSON_MAX, &n, e);
	if (buf == NULL)
		return -1;
	rc = parse(j, buf, n, only, &why);
	free(buf);
	if (rc == -1) {
		mr_fail(e, "%s: %.900s", path, why.text);
		errno = EINVAL;
	}
	return rc;
}

int
mr_json_load(struct mr_json *j, const char *path, struct mr_err *e)
{
	return mr_json_load_only(j, path, NULL, e);
}

void
mr_json_free(struct mr_json j)
{
	jv_free(in(j));
}

/* ---- reading: what is borrowed stays alive in its root ---- */

/* V is also held by its parent: give our own count back */
static struct mr_json
borrow(jv v)
{
	if (jv_get_kind(v) == JV_KIND_INVALID) {
		jv_free(v);
		return outw(jv_invalid());
	}
	jv_free(jv_copy(v));
	jv_free(v);
	return outw(v);
}

enum mr_json_type
mr_json_type(struct mr_json j)
{
	switch (jv_get_kind(in(j))) {
	case JV_KIND_NULL:
		return MR_JSON_NULL;
	case JV_KIND_FALSE:
		return MR_JSON_FALSE;
	case JV_KIND_TRUE:
		return MR_JSON_TRUE;
	case JV_KIND_NUMBER:
		return MR_JSON_NUMBER;
	case JV_KIND_STRING:
		return MR_JSON_STRING;
	case JV_KIND_ARRAY:
		return MR_JSON_ARRAY;
	case JV_KIND_OBJECT:
		return MR_JSON_OBJECT;
	default:
		return MR_JSON_NONE;
	}
}

struct mr_json
mr_json_get(struct mr_json object, const char *key)
{
	if (jv_get_kind(in(object)) != JV_KIND_OBJECT)
		return outw(jv_invalid());
	return borrow(jv_object_get(jv_copy(in(object)), jv_string(key)));
}

struct mr_json
mr_json_at(struct mr_json array, size_t i)
{
	if (i >= mr_json_len(array) ||
	    jv_get_kind(in(array)) != JV_KIND_ARRAY)
		return outw(jv_invalid());
	return borrow(jv_array_get(jv_copy(in(array)), (int)i));
}

size_t
mr_json_len(struct mr_json j)
{
	jv v = in(j);

	if (jv_get_kind(v) == JV_KIND_ARRAY)
		return (size_t)jv_array_length(jv_copy(v));
	if (jv_get_kind(v) == JV_KIND_OBJECT)
		return (size_t)jv_object_length(jv_copy(v));
	return 0;
}

/* the iterator, or -1 at the end */
static int
valid(jv object, int i)
{
	return jv_object_iter_valid(object, i) ? i : -1;
}

int
mr_json_first(struct mr_json object)
{
	if (jv_get_kind(in(object)) != JV_KIND_OBJECT)
		return -1;
	return valid(in(object), jv_object_iter(in(object)));
}

int
mr_json_next(struct mr_json object, int i)
{
	return valid(in(object), jv_object_iter_next(in(object), i));
}

const char *
mr_json_key(struct mr_json object, int i)
{
	return mr_json_text(borrow(jv_object_iter_key(in(object), i)));
}

struct mr_json
mr_json_val(struct mr_json object, int i)
{
	return borrow(jv_object_iter_value(in(object), i));
}

const char *
mr_json_text(struct mr_json j)
{
	if (jv_get_kind(in(j)) != JV_KIND_STRING)
		return NULL;
	return jv_string_value(in(j));
}

const char *
mr_json_str(struct mr_json object, const char *key, const char *fallback)
{
	const char *s;

	s = mr_json_text(mr_json_get(object, key));
	return s != NULL ? s : fallback;
}

int64_t
mr_json_int(struct mr_json object, const char *key, int64_t fallback)
{
	jv v = in(mr_json_get(object, key));
	double d;

	if (jv_get_kind(v) != JV_KIND_NUMBER)
		return fallback;
	d = jv_number_value(v);
	if (!(d >= 0) || d > 9007199254740992.0 || d != (double)(int64_t)d)
		return fallback;
	return (int64_t)d;
}

int
mr_json_bool(struct mr_json object, const char *key, int fallback)
{
	switch (mr_json_type(mr_json_get(object, key))) {
	case MR_JSON_TRUE:
		return 1;
	case MR_JSON_FALSE:
		return 0;
	default:
		return fallback;
	}
}

int
mr_json_equal(struct mr_json a, struct mr_json b)
{
	return jv_equal(jv_copy(in(a)), jv_copy(in(b)));
}

/* ---- building ---- */

struct mr_json
mr_json_object(void)
{
	return outw(jv_object());
}

struct mr_json
mr_json_array(void)
{
	return outw(jv_array());
}

struct mr_json
mr_json_string(const char *s)
{
	return outw(jv_string(s));
}

struct mr_json
mr_json_number(uint64_t n)
{
	return outw(jv_number((double)n));
}

struct mr_json
mr_json_truth(int truth)
{
	return outw(truth ? jv_true() : jv_false());
}

struct mr_json
mr_json_null(void)
{
	return outw(jv_null());
}

struct mr_json
mr_json_copy(struct mr_json borrowed)
{
	return outw(jv_copy(in(borrowed)));
}

void
mr_json_set(struct mr_json *object, const char *key, struct mr_json v)
{
	*object = outw(jv_object_set(in(*object), jv_string(key), in(v)));
}

void
mr_json_set_str(struct mr_json *object, const char *key, const char *s)
{
	mr_json_set(object, key, mr_json_string(s));
}

void
mr_json_set_int(struct mr_json *object, const char *key, uint64_t n)
{
	mr_json_set(object, key, mr_json_number(n));
}

void
mr_json_set_bool(struct mr_json *object, const char *key, int truth)
{
	mr_json_set(object, key, mr_json_truth(truth));
}

void
mr_json_del(struct mr_json *object, const char *key)
{
	*object = outw(jv_object_delete(in(*object), jv_string(key)));
}

void
mr_json_push(struct mr_json *array, struct mr_json v)
{
	*array = outw(jv_array_append(in(*array), in(v)));
}

char *
mr_json_dump(struct mr_json j, int indent)
{
	jv s;
	char *text;

	if (!jv_is_valid(in(j)))
		return mr_strdup("null");
	s = jv_dump_string(jv_copy(in(j)), indent ? JV_PRINT_PRETTY |
	    JV_PRINT_INDENT_FLAGS(indent) : 0);
	text = mr_strdup(jv_string_value(s));
	jv_free(s);
	return text;
}

int
mr_json_save(struct mr_json j, const char *path, struct mr_err *e)
{
	struct mr_out o;
	char *text;
	size_t n;

	if (mr_out_open(&o, path, e) == -1)
		return -1;
	text = mr_json_dump(j, 2);
	n = strlen(text);
	text[n] = '\n';	/* in place of its NUL */
	if (mr_write(o.fd, text, n + 1) == -1) {
		mr_fail(e, "%s: write: %s", o.tmp, strerror(errno));
		free(text);
		mr_out_abort(&o);
		return -1;
	}
	free(text);
	return mr_out_commit(&o, e);
}
