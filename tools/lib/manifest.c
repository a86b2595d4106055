/* Manifests, kept as they are written: order, unknown members, digits. What is
 * written is what Python's json.dumps(indent=2, ensure_ascii=False) writes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mr.h"

/* ---- text that grows ---- */

struct out {
	char	*text;
	size_t	 len, cap;
};

static void
put(struct out *o, const char *s, size_t n)
{
	if (o->len + n > o->cap) {
		o->cap = (o->len + n) + (o->len + n) / 4 + 64;
		o->text = mr_realloc(o->text, o->cap);
	}
	memcpy(o->text + o->len, s, n);
	o->len += n;
}

static void
put_text(struct out *o, const char *s)
{
	put(o, s, strlen(s));
}

/* a new line, DEPTH levels in */
static void
newline(struct out *o, size_t depth)
{
	put_text(o, "\n");
	while (depth-- > 0)
		put_text(o, "  ");
}

/* ---- values: text that mr_json_check has passed -> Python's text ---- */

static const char *
blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* the value of the four hex digits at P */
static uint32_t
hex4(const char *p)
{
	uint32_t v = 0;
	int i;

	for (i = 0; i < 4; i++)
		v = v * 16 + (uint32_t)mr_hex_digit(p[i]);
	return v;
}

/* One character as Python escapes it: what is not ASCII stays. */
static void
put_char(struct out *o, uint32_t c)
{
	static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
	const char *which;
	char s[8];

	which = c != 0 && c < 0x80 ? strchr(from, (int)c) : NULL;
	if (which != NULL) {
		s[0] = '\\';
		s[1] = to[which - from];
		put(o, s, 2);
	} else if (c < 0x20) {
		snprintf(s, sizeof(s), "\\u%04x", (unsigned)c);
		put(o, s, 6);
	} else {
		put(o, s, (size_t)(mr_utf8_put(s, c) - s));
	}
}

/* the escape at P, a backslash; where it ends */
static const char *
put_escape(struct out *o, const char *p)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *which;
	uint32_t c;

	if (p[1] != 'u') {
		which = strchr(from, p[1]);
		put_char(o, which != NULL ? (uint32_t)to[which - from] :
		    (unsigned char)p[1]);
		return p + 2;
	}
	c = hex4(p + 2);
	p += 6;
	if (c >= 0xd800 && c <= 0xdbff) {
		c = 0x10000 + ((c - 0xd800) << 10) + hex4(p + 2) - 0xdc00;
		p += 6;
	}
	put_char(o, c);
	return p;
}

static const char *
put_string(struct out *o, const char *p)
{
	size_t plain;

	put_text(o, "\"");
	for (p++; *p != '"'; ) {
		plain = strcspn(p, "\"\\");
		put(o, p, plain);
		p += plain;
		if (*p == '\\')
			p = put_escape(o, p);
	}
	put_text(o, "\"");
	return p + 1;
}

/* A double as Python's repr writes it: the fewest digits that mean it. */
static void
put_double(struct out *o, double d)
{
	char text[40], digits[24], *e;
	int precision, exponent, n;

	for (precision = 0; precision < 17; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, d);
		if (strtod(text, NULL) == d)
			break;
	}
	e = strchr(text, 'e');
	exponent = (int)strtol(e + 1, NULL, 10);
	if (exponent < -4 || exponent >= 16) {
		put(o, text, (size_t)(e - text));
		snprintf(text, sizeof(text), "e%c%02d", exponent < 0 ? '-' :
		    '+', abs(exponent));
		put_text(o, text);
		return;
	}
	n = precision - exponent;
	snprintf(digits, sizeof(digits), "%.*f", n > 1 ? n : 1, d);
	put_text(o, digits);
}

/* A number: an integer keeps its digits, however many. */
static const char *
put_number(struct out *o, const char *p)
{
	size_t n, digits;

	n = strspn(p, "+-.0123456789eE");
	digits = strspn(p, "-0123456789");
	if (digits < n)
		put_double(o, strtod(p, NULL));
	else if (n == 2 && memcmp(p, "-0", 2) == 0)
		put_text(o, "0");
	else
		put(o, p, n);
	return p + n;
}

/* The value at P, DEPTH levels in; where it ends. Depth is bounded by
 * mr_json_check. */
static const char *
put_value(struct out *o, const char *p, size_t depth)
{
	char close = *p == '{' ? '}' : ']', s[2];
	size_t n;

	if (*p == '"')
		return put_string(o, p);
	if (*p == '-' || (*p >= '0' && *p <= '9'))
		return put_number(o, p);
	if (*p != '{' && *p != '[') {
		n = strspn(p, "aeflnrstu");
		put(o, p, n);
		return p + n;
	}
	put(o, p, 1);
	p = blanks(p + 1);
	for (n = 0; *p != close; n++) {
		newline(o, depth + 1);
		if (close == '}') {
			p = blanks(put_string(o, p));
			put_text(o, ": ");
			p = blanks(p + 1);
		}
		p = blanks(put_value(o, p, depth + 1));
		if (*p == ',') {
			put_text(o, ",");
			p = blanks(p + 1);
		}
	}
	if (n > 0)
		newline(o, depth);
	s[0] = close;
	put(o, s, 1);
	return p + 1;
}

/* where the value that begins at P ends */
static const char *
skip(const char *p)
{
	size_t depth = 0;

	do {
		if (*p == '"') {
			for (p++; *p != '"'; p++)
				if (*p == '\\')
					p++;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			depth--;
		} else if (depth == 0) {
			return p + strspn(p, "+-.0123456789eEaflnrstu");
		}
		p++;
	} while (depth > 0);
	return p;
}

/* ---- reading ---- */

/* Is the key at P, a string, NAME? */
static int
key_is(const char *p, const char *name)
{
	struct out o = { NULL, 0, 0 };
	size_t n = strlen(name);
	int same;

	if (memchr(p, '\\', (size_t)(skip(p) - p)) == NULL)
		return strncmp(p + 1, name, n) == 0 && p[n + 1] == '"';
	put_string(&o, p);
	same = o.len == n + 2 && memcmp(o.text + 1, name, n) == 0;
	free(o.text);
	return same;
}

/* The members of the object at P; the caller frees *LIST. */
static const char *
members(const char *p, struct mr_member **list, size_t *n)
{
	size_t cap = 8;

	*n = 0;
	*list = mr_malloc(cap * sizeof(**list));
	for (p = blanks(p + 1); *p != '}'; ) {
		if (*n == cap) {
			cap *= 2;
			*list = mr_realloc(*list, cap * sizeof(**list));
		}
		(*list)[*n].key = p;
		p = blanks(blanks(skip(p)) + 1);
		(*list)[(*n)++].value = p;
		p = blanks(skip(p));
		if (*p == ',')
			p = blanks(p + 1);
	}
	return p + 1;
}

/* where the text of a member's value begins, or NULL */
static const char *
get(const struct mr_entry *v, const char *key)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (key_is(v->member[i].key, key))
			return v->member[i].value;
	return NULL;
}

/* Copies the string at VALUE to TO, N bytes with its NUL; -1 if it is none or
 * does not fit. */
static int
text_of(const char *value, char *to, size_t n)
{
	struct out o = { NULL, 0, 0 };
	int rc = -1;

	if (value == NULL || *value != '"')
		return -1;
	put_string(&o, value);
	if (o.len - 2 < n) {
		memcpy(to, o.text + 1, o.len - 2);
		to[o.len - 2] = '\0';
		rc = 0;
	}
	free(o.text);
	return rc;
}

/* one entry, at P */
static const char *
read_entry(struct mr_entry *v, const char *p, size_t at, const char *path,
    struct mr_err *e)
{
	char version[16], shown[MR_SHOWN];
	const char *value;

	v->at = at;
	v->n = 0;
	v->member = NULL;
	if (*p != '{') {
		mr_fail(e, "%s: entry %zu: wanted an object", path, at);
		return NULL;
	}
	p = members(p, &v->member, &v->n);
	value = get(v, "id");
	if (text_of(value, v->id, sizeof(v->id)) == -1 || !mr_id_ok(v->id)) {
		mr_fail(e, "%s: entry %zu: id is %s, wanted a model id", path,
		    at, value == NULL ? "missing" : mr_show(shown, value,
		    (size_t)(skip(value) - value)));
		return NULL;
	}
	value = get(v, "version");
	if (text_of(value, version, sizeof(version)) == -1 ||
	    !mr_version_ok(version)) {
		mr_fail(e, "%s: %s: version is %s, wanted v and 1 to 4 digits",
		    path, v->id, value == NULL ? "missing" : mr_show(shown,
		    value, (size_t)(skip(value) - value)));
		return NULL;
	}
	return p;
}

/* the list of entries, at P */
static int
read_list(struct mr_manifest *m, const char *p, struct mr_err *e)
{
	size_t cap = 0;

	if (p == NULL || *p != '[')
		return mr_fail(e, "%s: wanted {\"models\": [...]} or a list",
		    m->path);
	for (p = blanks(p + 1); *p != ']'; ) {
		if (m->n == cap) {
			cap = cap ? cap + cap / 2 : 64;
			m->entry = mr_realloc(m->entry,
			    cap * sizeof(*m->entry));
		}
		p = read_entry(&m->entry[m->n], p, m->n + 1, m->path, e);
		m->n++;
		if (p == NULL)
			return -1;
		p = blanks(p);
		if (*p == ',')
			p = blanks(p + 1);
	}
	return 0;
}

int
mr_entry_same(const struct mr_entry *a, const struct mr_entry *b)
{
	struct out x = { NULL, 0, 0 }, y = { NULL, 0, 0 }, k = { NULL, 0, 0 };
	const char *value;
	size_t i;
	int same;

	same = a->n == b->n && strcmp(a->id, b->id) == 0;
	for (i = 0; same && i < a->n; i++) {
		k.len = x.len = y.len = 0;
		put_string(&k, a->member[i].key);
		put(&k, "", 1);
		k.text[k.len - 2] = '\0';
		value = get(b, k.text + 1);
		if (value != NULL && strcmp(k.text, "\"id") != 0) {
			put_value(&x, a->member[i].value, 0);
			put_value(&y, value, 0);
		}
		same = value != NULL && x.len == y.len &&
		    (x.len == 0 || memcmp(x.text, y.text, x.len) == 0);
	}
	free(k.text);
	free(x.text);
	free(y.text);
	return same;
}

static int
by_id(const void *a, const void *b)
{
	const struct mr_entry *const *x = a, *const *y = b;
	int order;

	order = strcasecmp((*x)->id, (*y)->id);
	return order != 0 ? order : (*x)->at < (*y)->at ? -1 : 1;
}

/* Drops each entry that is there again, equal in all members; refuses those
 * that differ. */
static int
fold(struct mr_manifest *m, struct mr_err *e)
{
	struct mr_entry **v, *first;
	size_t i, n;
	int rc = 0;

	v = mr_malloc(m->n * sizeof(*v));
	for (i = 0; i < m->n; i++)
		v[i] = &m->entry[i];
	if (m->n > 0)
		qsort(v, m->n, sizeof(*v), by_id);
	for (i = 1, first = m->n > 0 ? v[0] : NULL; i < m->n; i++) {
		if (strcasecmp(first->id, v[i]->id) != 0) {
			first = v[i];
		} else if (mr_entry_same(first, v[i])) {
			v[i]->at = 0;
		} else {
			rc = mr_fail(e, "%s: entries %zu and %zu are %s and "
			    "%s, and differ: wanted each id once", m->path,
			    first->at, v[i]->at, first->id, v[i]->id);
			break;
		}
	}
	free(v);
	for (i = n = 0; rc == 0 && i < m->n; i++)
		if (m->entry[i].at != 0)
			m->entry[n++] = m->entry[i];
		else
			free(m->entry[i].member);
	if (rc == 0)
		m->n = n;
	return rc;
}

/* takes over TEXT, N bytes and a NUL */
static int
parse(struct mr_manifest *m, char *text, size_t n, const char *path,
    struct mr_err *e)
{
	struct mr_err why;
	const char *p;
	size_t i;
	int rc;

	memset(m, 0, sizeof(*m));
	m->path = path;
	m->text = text;
	if (mr_json_check(text, n, &why) == -1) {
		rc = mr_fail(e, "%s: %.900s", path, why.text);
	} else {
		p = blanks(text);
		if (*p == '{') {
			members(p, &m->root, &m->nroot);
			for (i = 0; i < m->nroot; i++)
				if (key_is(m->root[i].key, "models"))
					break;
			m->models = i;
			p = i < m->nroot ? m->root[i].value : NULL;
		}
		rc = read_list(m, p, e);
		if (rc == 0)
			rc = fold(m, e);
	}
	if (rc == -1)
		mr_manifest_free(m);
	return rc;
}

/* standard input to its end, NUL added; the caller frees */
static char *
slurp_stdin(size_t *len, struct mr_err *e)
{
	size_t cap = 1 << 16;
	char *text;
	ssize_t got;

	text = mr_malloc(cap + 1);
	for (*len = 0; ; *len += (size_t)got) {
		if (*len == cap) {
			cap *= 2;
			text = mr_realloc(text, cap + 1);
		}
		got = mr_read(0, text + *len, cap - *len);
		if (got <= 0 || *len + (size_t)got > MR_JSON_MAX)
			break;
	}
	if (got == 0) {
		text[*len] = '\0';
		return text;
	}
	if (got == -1)
		mr_fail(e, "standard input: read: %s", strerror(errno));
	else
		mr_fail(e, "standard input: longer than %d bytes",
		    MR_JSON_MAX);
	free(text);
	return NULL;
}

int
mr_manifest_load(struct mr_manifest *m, const char *path, struct mr_err *e)
{
	char *text;
	size_t n;

	if (path != NULL)
		text = mr_slurp(path, MR_JSON_MAX, &n, e);
	else
		text = slurp_stdin(&n, e);
	memset(m, 0, sizeof(*m));
	if (text == NULL)
		return -1;
	return parse(m, text, n, path != NULL ? path :
	    "standard input", e);
}

void
mr_manifest_free(struct mr_manifest *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		free(m->entry[i].member);
	for (i = 0; i < m->nown; i++)
		free(m->own[i]);
	free(m->own);
	free(m->entry);
	free(m->root);
	free(m->text);
	memset(m, 0, sizeof(*m));
}

/* ---- changing ---- */

void
mr_entry_del(struct mr_entry *v, const char *key)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (key_is(v->member[i].key, key))
			break;
	if (i == v->n)
		return;
	v->n--;
	memmove(&v->member[i], &v->member[i + 1],
	    (v->n - i) * sizeof(*v->member));
}

/* text that lives as long as M */
static const char *
keep(struct mr_manifest *m, char *text)
{
	if ((m->nown & (m->nown - 1)) == 0)
		m->own = mr_realloc(m->own, sizeof(*m->own) *
		    (m->nown > 0 ? m->nown * 2 : 1));
	return m->own[m->nown++] = text;
}

void
mr_entry_set(struct mr_manifest *m, struct mr_entry *v, const char *key,
    const char *value)
{
	const char *text;
	size_t i;

	text = keep(m, mr_strdup(value));
	for (i = 0; i < v->n; i++)
		if (key_is(v->member[i].key, key))
			break;
	if (i == v->n) {
		v->member = mr_realloc(v->member,
		    (v->n + 1) * sizeof(*v->member));
		v->member[v->n++].key = keep(m, mr_fmt("\"%s\"", key));
	}
	v->member[i].value = text;
}

void
mr_manifest_add(struct mr_manifest *m, size_t at, const struct mr_entry *v)
{
	struct mr_entry *to;

	m->entry = mr_realloc(m->entry, (m->n + 1) * sizeof(*m->entry));
	to = &m->entry[at];
	memmove(to + 1, to, (m->n - at) * sizeof(*to));
	m->n++;
	*to = *v;
	to->member = mr_malloc((v->n > 0 ? v->n : 1) * sizeof(*v->member));
	memcpy(to->member, v->member, v->n * sizeof(*v->member));
}

/* ---- writing ---- */

/* one entry; its id is the one in V, whatever its text says */
static void
put_entry(struct out *o, const struct mr_entry *v)
{
	size_t i;

	put_text(o, "{");
	for (i = 0; i < v->n; i++) {
		if (i > 0)
			put_text(o, ",");
		newline(o, 3);
		put_string(o, v->member[i].key);
		put_text(o, ": ");
		if (key_is(v->member[i].key, "id")) {
			put_text(o, "\"");
			put_text(o, v->id);
			put_text(o, "\"");
		} else {
			put_value(o, v->member[i].value, 3);
		}
	}
	newline(o, 2);
	put_text(o, "}");
}

static void
put_entries(struct out *o, const struct mr_manifest *m)
{
	size_t i;

	put_text(o, "[");
	for (i = 0; i < m->n; i++) {
		if (i > 0)
			put_text(o, ",");
		newline(o, 2);
		put_entry(o, &m->entry[i]);
	}
	if (m->n > 0)
		newline(o, 1);
	put_text(o, "]");
}

char *
mr_manifest_text(const struct mr_manifest *m, size_t *len)
{
	struct out o = { NULL, 0, 0 };
	size_t i;

	put_text(&o, "{");
	for (i = 0; i < m->nroot; i++) {
		if (i > 0)
			put_text(&o, ",");
		newline(&o, 1);
		put_string(&o, m->root[i].key);
		put_text(&o, ": ");
		if (i == m->models)
			put_entries(&o, m);
		else
			put_value(&o, m->root[i].value, 1);
	}
	if (m->nroot == 0) {
		newline(&o, 1);
		put_text(&o, "\"models\": ");
		put_entries(&o, m);
	}
	put_text(&o, "\n}\n");
	*len = o.len;
	return o.text;
}
