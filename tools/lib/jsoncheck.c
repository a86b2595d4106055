/* Is a text the JSON of RFC 8259, without what parsers disagree on: bad UTF-8,
 * lone surrogates, NUL, duplicate keys, deep nesting? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mr.h"

enum { DEPTH = 128 };	/* libjq counts a key as a level: half of its limit */

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
	size_t		 open[DEPTH];	/* an object's number, 0: an array */
	size_t		 depth, objects;
};

/* the value of four hex digits at P, or -1 */
static int
hex4(const char *p, const char *end)
{
	int v = 0, i, d;

	if (end - p < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		d = mr_hex_digit(p[i]);
		if (d == -1)
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
		n = mr_utf8(s->p, (size_t)(s->end - s->p));
		if (n == 0)
			return mr_fail(e, "line %zu: bytes that are not UTF-8",
			    s->line);
		if (*s->p == '\\') {
			*escaped = 1;
			n = s->end - s->p < 2 || strchr("\"\\/bfnrtu",
			    s->p[1]) == NULL || s->p[1] == '\0' ? 0 : 2;
			if (n == 2 && s->p[1] == 'u')
				n = escape_u(s->p, s->end);
			if (n == 0)
				return mr_fail(e, "line %zu: an escape that "
				    "is no character (a lone surrogate or "
				    "NUL?)", s->line);
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

/* a key (N bytes, its quotes too, checked) with its escapes undone, since
 * the same name may be written in two ways; the caller frees */
static char *
decode(const char *key, size_t n, size_t *len)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *end = key + n, *which;
	char *text, *p;
	uint32_t c;

	text = p = mr_malloc(n);	/* never longer than its escapes */
	while (key < end) {
		if (*key != '\\') {
			*p++ = *key++;
		} else if (key[1] == 'u') {
			c = (uint32_t)hex4(key + 2, end);
			key += 6;
			if (c >= 0xd800 && c <= 0xdfff) {
				c = 0x10000 + ((c - 0xd800) << 10) +
				    (uint32_t)hex4(key + 2, end) - 0xdc00;
				key += 6;
			}
			p = mr_utf8_put(p, c);
		} else {
			which = strchr(from, key[1]);
			*p++ = which != NULL ? to[which - from] : key[1];
			key += 2;
		}
	}
	*len = (size_t)(p - text);
	return text;
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
	char shown[MR_SHOWN];
	struct seen *t;

	if (escaped) {
		s->decoded = mr_realloc(s->decoded,
		    (s->ndecoded + 1) * sizeof(*s->decoded));
		key = s->decoded[s->ndecoded++] = decode(key, len, &len);
	}
	if (s->used * 2 >= s->cap)
		grow(s);
	t = slot_of(s, object, key, len);
	if (t->object != 0)
		return mr_fail(e, "line %zu: key \"%s\" was on line %zu "
		    "already", s->line, mr_show(shown, key + 1, len - 2),
		    t->line);
	*t = (struct seen){ object, key, len, s->line };
	s->used++;
	return 0;
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
	if (i == sizeof(words) / sizeof(words[0]) &&
	    !isfinite(strtod(word, NULL)))
		return mr_fail(e, "line %zu: a number beyond all bounds",
		    s->line);
	s->p += n;
	return 0;
}

/* what may come next */
enum want { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, NEXT };

/* opens an object or array */
static int
nest(struct scan *s, enum want *want, struct mr_err *e)
{
	if (s->depth == DEPTH)
		return mr_fail(e, "line %zu: more than %d levels deep",
		    s->line, DEPTH);
	s->open[s->depth++] = *s->p == '{' ? ++s->objects : 0;
	*want = *s->p == '{' ? FIRST_KEY : FIRST_VALUE;
	s->p++;
	return 0;
}

/* takes a value, or the first token of one */
static int
take_value(struct scan *s, enum want *want, struct mr_err *e)
{
	int escaped;

	if (*s->p == '{' || *s->p == '[')
		return nest(s, want, e);
	*want = NEXT;
	return *s->p == '"' ? scan_string(s, &escaped, e) : scan_word(s, e);
}

static int
take_key(struct scan *s, enum want *want, struct mr_err *e)
{
	const char *key = s->p;
	int escaped;

	if (*s->p != '"')
		return mr_fail(e, "line %zu: not JSON: wanted a key", s->line);
	if (scan_string(s, &escaped, e) == -1)
		return -1;
	*want = COLON;
	return note_key(s, s->open[s->depth - 1], key, (size_t)(s->p - key),
	    escaped, e);
}

/* takes a comma or the end of what is open */
static int
take_next(struct scan *s, enum want *want, struct mr_err *e)
{
	size_t object;

	if (s->depth == 0)
		return mr_fail(e, "line %zu: not JSON: text after the end",
		    s->line);
	object = s->open[s->depth - 1];
	if (*s->p == ',' && *want == NEXT) {
		*want = object ? KEY : VALUE;
	} else if (*s->p == (object ? '}' : ']')) {
		s->depth--;
		*want = NEXT;
	} else {
		return mr_fail(e, "line %zu: not JSON: wanted , or %c",
		    s->line, object ? '}' : ']');
	}
	s->p++;
	return 0;
}

/* takes one token */
static int
take(struct scan *s, enum want *want, struct mr_err *e)
{
	switch (*want) {
	case FIRST_KEY:
		if (*s->p == '}')
			return take_next(s, want, e);
		return take_key(s, want, e);
	case KEY:
		return take_key(s, want, e);
	case COLON:
		if (*s->p != ':')
			return mr_fail(e, "line %zu: not JSON: wanted :",
			    s->line);
		s->p++;
		*want = VALUE;
		return 0;
	case FIRST_VALUE:
		if (*s->p == ']')
			return take_next(s, want, e);
		return take_value(s, want, e);
	case VALUE:
		return take_value(s, want, e);
	default:
		return take_next(s, want, e);
	}
}

int
mr_json_check(const char *buf, size_t n, struct mr_err *e)
{
	struct scan s = { .p = buf, .end = buf + n, .line = 1 };
	enum want want = VALUE;
	size_t i;
	int rc = 0;

	if (n > MR_JSON_MAX)
		return mr_fail(e, "longer than %d bytes", MR_JSON_MAX);
	while (rc == 0 && s.p < s.end) {
		if (*s.p == '\n')
			s.line++;
		if (*s.p == ' ' || *s.p == '\n' || *s.p == '\t' ||
		    *s.p == '\r')
			s.p++;
		else
			rc = take(&s, &want, e);
	}
	if (rc == 0 && (s.depth > 0 || want != NEXT))
		rc = mr_fail(e, "line %zu: not JSON: %s", s.line, n == 0 ?
		    "empty" : "it ends too early");
	for (i = 0; i < s.ndecoded; i++)
		free(s.decoded[i]);
	free(s.decoded);
	free(s.slot);
	return rc;
}
