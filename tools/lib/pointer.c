/* Git LFS pointers: git-lfs docs/spec.md, and what git-lfs reads besides. */
#include <string.h>

#include "mr.h"

static const char canon[] = "https://git-lfs.github.com/spec/v1";

/* one "KEY VALUE" line; neither is NUL-terminated */
struct line {
	const char	*key, *value;
	size_t		 nkey, nvalue;
};

static int
blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Is WORD somewhere in the N bytes of S? */
static int
holds(const char *s, size_t n, const char *word)
{
	size_t i, k;

	k = strlen(word);
	for (i = 0; i + k <= n; i++)
		if (memcmp(s + i, word, k) == 0)
			return 1;
	return 0;
}

static int
equal(const char *s, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(s, word, n) == 0;
}

/* Does the text want to be a pointer? Then it is one, or it is refused: a
 * spoiled pointer must not pass for a model. */
static int
claims(const char *s, size_t n)
{
	static const char *const key[] = {
		"version ", "oid ", "size ", "ext-"
	};
	size_t i;

	if (n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0) {
		s += 3;
		n -= 3;
	}
	for (; n > 0 && blank(*s); n--)
		s++;
	for (i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		if (n > strlen(key[i]) &&
		    memcmp(s, key[i], strlen(key[i])) == 0)
			return holds(s, n, "git-lfs") ||
			    holds(s, n, "hawser") || holds(s, n, "git-media");
	return 0;
}

/* Takes the next line that is not empty off *S. 1: there is one, 0: the end,
 * -1: it is not "KEY VALUE", KEY holds all of it. */
static int
next(const char **s, const char *end, struct line *l)
{
	const char *p, *stop;

	for (;; *s = stop + 1) {
		if (*s >= end)
			return 0;
		stop = memchr(*s, '\n', (size_t)(end - *s));
		if (stop == NULL)
			stop = end;
		p = stop > *s && stop[-1] == '\r' ? stop - 1 : stop;
		if (p > *s)
			break;
	}
	l->key = *s;
	*s = stop + 1;
	stop = memchr(l->key, ' ', (size_t)(p - l->key));
	l->nkey = (size_t)(p - l->key);
	if (stop == NULL)
		return -1;
	l->nkey = (size_t)(stop - l->key);
	l->value = stop + 1;
	l->nvalue = (size_t)(p - l->value);
	return 1;
}

/* the value of the next line, whose key must be KEY */
static int
want(const char **s, const char *end, const char *key, struct line *l,
    struct mr_err *e)
{
	char shown[MR_SHOWN];
	int rc;

	rc = next(s, end, l);
	if (rc == 0)
		return mr_fail(e, "pointer ends where a line \"%s\" was "
		    "wanted", key);
	if (rc == -1)
		return mr_fail(e, "pointer has the line \"%s\", wanted "
		    "\"%s VALUE\"", mr_show(shown, l->key, l->nkey), key);
	if (equal(l->key, l->nkey, key))
		return 0;
	if (l->nkey > 4 && memcmp(l->key, "ext-", 4) == 0)
		return mr_fail(e, "pointer has an extension (%s): its object "
		    "is not the file's bytes, commit the file without it",
		    mr_show(shown, l->key, l->nkey));
	return mr_fail(e, "pointer has the key \"%s\", wanted \"%s\"",
	    mr_show(shown, l->key, l->nkey), key);
}

static int
version(const struct line *l, struct mr_pointer *p, struct mr_err *e)
{
	char shown[MR_SHOWN];

	if (equal(l->value, l->nvalue, canon))
		return 0;
	if (equal(l->value, l->nvalue, "https://hawser.github.com/spec/v1"))
		p->notice = "pointer is not canonical: the old version URL of "
		    "hawser";
	else if (equal(l->value, l->nvalue, "http://git-media.io/v/2"))
		p->notice = "pointer is not canonical: the old version URL of "
		    "git-media";
	else
		return mr_fail(e, "pointer version is \"%s\", wanted %s",
		    mr_show(shown, l->value, l->nvalue), canon);
	return 0;
}

static int
oid(const struct line *l, struct mr_pointer *p, struct mr_err *e)
{
	char shown[MR_SHOWN];

	if (l->nvalue == 7 + 64 && memcmp(l->value, "sha256:", 7) == 0) {
		memcpy(p->oid, l->value + 7, 64);
		p->oid[64] = '\0';
		if (mr_oid_ok(p->oid))
			return 0;
	}
	return mr_fail(e, "pointer oid is \"%s\", wanted sha256: and 64 "
	    "lower-case hex digits", mr_show(shown, l->value, l->nvalue));
}

static int
size(const struct line *l, struct mr_pointer *p, struct mr_err *e)
{
	static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb924"
	    "27ae41e4649b934ca495991b7852b855";
	char shown[MR_SHOWN], digits[20];

	if (l->nvalue >= sizeof(digits) ||
	    memchr(l->value, '\0', l->nvalue) != NULL)
		return mr_fail(e, "pointer size is \"%s\", wanted at most "
		    "19 digits", mr_show(shown, l->value, l->nvalue));
	memcpy(digits, l->value, l->nvalue);
	digits[l->nvalue] = '\0';
	if (mr_number(digits, INT64_MAX, &p->size) == -1)
		return mr_fail(e, "pointer size is \"%s\", wanted decimal "
		    "digits without sign or leading zeros",
		    mr_show(shown, l->value, l->nvalue));
	if ((p->size == 0) != (strcmp(p->oid, empty) == 0))
		return mr_fail(e, "pointer size is %s, which does not fit oid "
		    "%s", digits, p->oid);
	return 0;
}

/* why a pointer that could be read is not what git-lfs writes */
static const char *
form(const char *buf, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (buf[i] == '\r')
			return "pointer is not canonical: lines end with CRLF";
	if (n == 0 || buf[n - 1] != '\n')
		return "pointer is not canonical: no newline at the end";
	for (i = 0; i < n; i++)
		if (buf[i] == '\n' && (i == 0 || buf[i - 1] == '\n'))
			return "pointer is not canonical: blank lines";
	if (blank(buf[0]) || (n > 1 && blank(buf[n - 2])))
		return "pointer is not canonical: blanks around it";
	return NULL;
}

int
mr_pointer_parse(const char *buf, size_t n, struct mr_pointer *p,
    struct mr_err *e)
{
	char shown[MR_SHOWN];
	const char *s = buf, *end = buf + n;
	struct line l = { "", "", 0, 0 };

	memset(p, 0, sizeof(*p));
	if (n >= MR_POINTER_MAX || !claims(buf, n))
		return 0;
	/* git-lfs trims what is around a pointer before it reads it */
	for (; s < end && blank(*s); s++)
		;
	for (; end > s && blank(end[-1]); end--)
		;
	if (want(&s, end, "version", &l, e) == -1 || version(&l, p, e) == -1 ||
	    want(&s, end, "oid", &l, e) == -1 || oid(&l, p, e) == -1 ||
	    want(&s, end, "size", &l, e) == -1 || size(&l, p, e) == -1)
		return -1;
	if (next(&s, end, &l) != 0)
		return mr_fail(e, "pointer has text after its size: \"%s\"",
		    mr_show(shown, l.key, (size_t)(end - l.key)));
	if (p->notice == NULL)
		p->notice = form(buf, n);
	return 1;
}
