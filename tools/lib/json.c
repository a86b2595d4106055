/* JSON by libjq, with what libjq lets pass refused first: bad UTF-8, lone
 * surrogates, NaN, and duplicate keys (RFC 8259 sections 4 and 8). */
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

/* ---- the check before the parse ---- */

enum { DEPTH = 256 };

/* one key that was seen: which object, what text, where */
struct seen {
	size_t		 object;	/* 0: a free slot */
	const char	*key;
	size_t		 len, line;
};

struct scan {
	const char	*p, *end;
	size_t		 line;
	struct seen	*slot;		/* open addressing, a power of two */
	size_t		 cap, used;
	char		**decoded;	/* keys with escapes, to be freed */
	size_t		 ndecoded;
};

/* the length of the UTF-8 sequence at P, or 0: Unicode table 3-7 */
static size_t
utf8(const char *s, const char *end)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n, i, left = (size_t)(end - s);

	if (p[0] < 0x80)
		return 1;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
		return 0;
	for (i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* the value of four hex digits at P, or -1 */
static int
hex4(const char *p, const char *end)
{
	int v = 0, i, d;

	if (end - p < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			d = p[i] - '0';
		else if ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'f')
			d = (p[i] | 32) - 'a' + 10;
		else
			return -1;
		v = v * 16 + d;
	}
	return v;
}

/* one \u escape, P at the backslash: the bytes it takes, or 0 */
static size_t
escape_u(const char *p, const char *end)
{
	int hi, lo;

	hi = hex4(p + 2, end);
	if (hi <= 0)	/* a NUL would cut every text in C short */
		return 0;
	if (hi < 0xd800 || hi > 0xdfff)
		return 6;
	if (hi > 0xdbff || end - p < 8 || p[6] != '\\' || p[7] != 'u')
		return 0;
	lo = hex4(p + 8, end);
	return lo >= 0xdc00 && lo <= 0xdfff ? 12 : 0;
}

/* steps over a string; S->p is at its opening quote */
static int
scan_string(struct scan *s, int *escaped, struct mr_err *e)
{
	size_t n;

	*escaped = 0;
	for (s->p++; s->p < s->end && *s->p != '"'; s->p += n) {
		n = utf8(s->p, s->end);
		if (n == 0)
			return mr_fail(e, "line %zu: bytes that are not UTF-8",
			    s->line);
		if (*s->p == '\\') {
			*escaped = 1;
			n = 2;
			if (s->end - s->p >= 2 && s->p[1] == 'u')
				n = escape_u(s->p, s->end);
			if (n == 0)
				return mr_fail(e,
				    "line %zu: a \\u escape that is no "
				    "character (a lone surrogate or NUL)",
				    s->line);
		} else if ((unsigned char)*s->p < 0x20) {
			return mr_fail(e, "line %zu: a control character "
			    "inside a string", s->line);
		}
	}
	if (s->p >= s->end)
		return mr_fail(e, "line %zu: a string without end", s->line);
	s->p++;
	return 0;
}

/* FNV-1a over the object's number and the key */
static size_t
hash(size_t object, const char *key, size_t len)
{
	uint64_t h = 1469598103934665603u ^ object;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)key[i]) * 1099511628211u;
	return (size_t)(h ^ h >> 29);
}

/* the slot of a key, taken or free */
static struct seen *
slot_of(const struct scan *s, size_t object, const char *key, size_t len)
{
	struct seen *t;
	size_t i;

	for (i = hash(object, key, len);; i++) {
		t = &s->slot[i & (s->cap - 1)];
		if (t->object == 0 || (t->object == object && t->len == len &&
		    memcmp(t->key, key, len) == 0))
			return t;
	}
}

static void
grow(struct scan *s)
{
	struct seen *old = s->slot;
	size_t i, n = s->cap;

	s->cap = n ? n * 2 : 64;
	s->slot = mr_malloc(s->cap * sizeof(*s->slot));
	memset(s->slot, 0, s->cap * sizeof(*s->slot));
	for (i = 0; i < n; i++)
		if (old[i].object != 0)
			*slot_of(s, old[i].object, old[i].key, old[i].len) =
			    old[i];
	free(old);
}

/* remembers a key (with its quotes) of OBJECT, or says it was there */
static int
note_key(struct scan *s, size_t object, const char *key, size_t len,
    int escaped, struct mr_err *e)
{
	struct seen *t;
	jv v;

	if (escaped) {	/* the same name may be written in two ways */
		v = jv_parse_sized(key, (int)len);
		if (jv_get_kind(v) == JV_KIND_STRING) {
			s->decoded = mr_realloc(s->decoded,
			    (s->ndecoded + 1) * sizeof(*s->decoded));
			key = s->decoded[s->ndecoded++] =
			    mr_fmt("\"%s\"", jv_string_value(v));
			len = strlen(key);
		}
		jv_free(v);
	}
	if (s->used * 2 >= s->cap)
		grow(s);
	t = slot_of(s, object, key, len);
	if (t->object != 0)
		return mr_fail(e, "line %zu: key %.*s was on line %zu already",
		    s->line, (int)(len < 200 ? len : 200), key, t->line);
	*t = (struct seen){ object, key, len, s->line };
	s->used++;
	return 0;
}

/* is the string that ended at P a key: is the next token a colon? */
static int
colon_follows(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n", *p) != NULL && *p != '\0')
		p++;
	return p < end && *p == ':';
}

/* the length of a number at P, N bytes at most, or 0: RFC 8259 section 6 */
static size_t
number(const char *p, size_t n)
{
	static const char digits[] = "0123456789";
	size_t i, d;

	i = p[0] == '-';
	d = strspn(p + i, digits);
	if (d == 0 || (d > 1 && p[i] == '0'))
		return 0;
	i += d;
	if (i < n && p[i] == '.') {
		d = strspn(p + i + 1, digits);
		if (d == 0)
			return 0;
		i += 1 + d;
	}
	if (i < n && (p[i] | 32) == 'e') {
		i += i + 1 < n && (p[i + 1] == '+' || p[i + 1] == '-') ? 2 : 1;
		d = strspn(p + i, digits);
		if (d == 0)
			return 0;
		i += d;
	}
	return i;
}

/* steps over a number, true, false or null */
static int
scan_word(struct scan *s, struct mr_err *e)
{
	static const char *const words[] = { "true", "false", "null" };
	char word[320];	/* no number that means anything is longer */
	size_t i, n, left = (size_t)(s->end - s->p);

	for (n = 0; n < left && n < sizeof(word) - 1 && s->p[n] > ' ' &&
	    strchr("{}[]:,\"", s->p[n]) == NULL; n++)
		word[n] = s->p[n];
	word[n] = '\0';
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0)
			break;
	if (n == sizeof(word) - 1 || (i == sizeof(words) / sizeof(words[0]) &&
	    (n == 0 || number(word, n) != n)))
		return mr_fail(e, *s->p == '\0' ? "line %zu: a NUL byte" :
		    "line %zu: a word that is not JSON", s->line);
	s->p += n;
	return 0;
}

static int
scan_text(struct scan *s, struct mr_err *e)
{
	size_t object[DEPTH + 1], depth = 0, objects = 0;
	const char *key;
	int escaped;

	object[0] = 0;
	while (s->p < s->end) {
		switch (*s->p) {
		case '"':
			key = s->p;
			if (scan_string(s, &escaped, e) == -1)
				return -1;
			if (object[depth] != 0 &&
			    colon_follows(s->p, s->end) &&
			    note_key(s, object[depth], key,
			    (size_t)(s->p - key), escaped, e) == -1)
				return -1;
			continue;
		case '{':
		case '[':
			if (++depth >= DEPTH)
				return mr_fail(e, "line %zu: more than %d "
				    "levels deep", s->line, DEPTH - 1);
			object[depth] = *s->p == '{' ? ++objects : 0;
			break;
		case '}':
		case ']':
			if (depth > 0)
				depth--;
			break;
		case '\n':
			s->line++;
			break;
		case ' ':
		case '\t':
		case '\r':
		case ',':
		case ':':
			break;
		default:
			if (scan_word(s, e) == -1)
				return -1;
			continue;
		}
		s->p++;
	}
	return 0;
}

int
mr_json_parse(struct mr_json *j, const char *buf, size_t n, struct mr_err *e)
{
	struct scan s = { .p = buf, .end = buf + n, .line = 1 };
	const char *text, *cut;
	jv v, msg;
	size_t i;
	int rc;

	if (n > MR_JSON_MAX)
		return mr_fail(e, "longer than %d bytes", MR_JSON_MAX);
	rc = scan_text(&s, e);
	for (i = 0; i < s.ndecoded; i++)
		free(s.decoded[i]);
	free(s.decoded);
	free(s.slot);
	if (rc == -1)
		return -1;
	v = jv_parse_sized(buf, (int)n);
	if (jv_is_valid(v)) {
		*j = outw(v);
		return 0;
	}
	msg = jv_invalid_get_msg(v);
	text = jv_get_kind(msg) == JV_KIND_STRING ? jv_string_value(msg) :
	    "empty";
	cut = strstr(text, " (while parsing");	/* all of BUF follows there */
	mr_fail(e, "not JSON: %.*s", cut != NULL ? (int)(cut - text) : 200,
	    text);
	jv_free(msg);
	return -1;
}

int
mr_json_load(struct mr_json *j, const char *path, struct mr_err *e)
{
	struct mr_err why;
	size_t n;
	char *buf;
	int rc;

	buf = mr_slurp(path, MR_JSON_MAX, &n, e);
	if (buf == NULL)
		return -1;
	rc = mr_json_parse(j, buf, n, &why);
	free(buf);
	if (rc == -1) {
		mr_fail(e, "%s: %.900s", path, why.text);
		errno = EINVAL;
	}
	return rc;
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
