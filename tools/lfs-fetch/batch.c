/* The batch call: what is asked, and what a server may answer; git-lfs
 * docs/api/batch.md. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lfs-fetch.h"

char *
batch_body(struct object *const o[], size_t n)
{
	char *s, *more;
	size_t i;

	s = mr_strdup("{\"operation\":\"download\",\"transfers\":[\"basic\"],"
	    "\"objects\":[");
	/* by hand: libjq's numbers are doubles */
	for (i = 0; i < n; i++) {
		more = mr_fmt("%s%s{\"oid\":\"%s\",\"size\":%llu}", s,
		    i > 0 ? "," : "", o[i]->oid,
		    (unsigned long long)o[i]->size);
		free(s);
		s = more;
	}
	more = mr_fmt("%s],\"hash_algo\":\"sha256\"}", s);
	free(s);
	return more;
}

void
link_free(struct link *l)
{
	free(l->href);
	curl_slist_free_all(l->header);
	memset(l, 0, sizeof(*l));
}

/* seconds since 1970 of "2026-11-10T15:29:07Z", fraction and offset allowed
 * (RFC 3339), or -1 */
static int64_t
rfc3339(const char *s)
{
	struct tm tm;
	int y, mo, d, h, mi, sec, n = 0, oh = 0, om = 0;

	if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d%n", &y, &mo, &d, &h, &mi, &sec,
	    &n) != 6)
		return -1;
	s += n;
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789");
	if (*s == '+' || *s == '-') {
		if (sscanf(s + 1, "%2d:%2d", &oh, &om) != 2)
			return -1;
		if (*s == '-') {
			oh = -oh;
			om = -om;
		}
	} else if (strcmp(s, "Z") != 0)
		return -1;
	memset(&tm, 0, sizeof(tm));
	tm.tm_year = y - 1900;
	tm.tm_mon = mo - 1;
	tm.tm_mday = d;
	tm.tm_hour = h - oh;
	tm.tm_min = mi - om;
	tm.tm_sec = sec;
	return (int64_t)timegm(&tm);
}

/* when a link stops working, in ms of mr_now_ms(); 0: not known */
static int64_t
expiry(struct mr_json action)
{
	const char *text;
	int64_t s, at;

	s = mr_json_int(action, "expires_in", 0);
	text = mr_json_str(action, "expires_at", NULL);
	if (s == 0 && text != NULL) {
		at = rfc3339(text);
		/* Go writes a time that was not set as the year 1 */
		if (at <= 0)
			return 0;
		s = at - (int64_t)time(NULL);
		if (s <= 0)
			return 1;
	}
	if (s == 0)
		return 0;
	/* more than a day is for ever, and does not overflow */
	return s > 86400 ? 0 : mr_now_ms() + s * 1000;
}

/* Is NAME one that we set ourselves, or that would change the framing? */
static int
ours(const char *name)
{
	static const char *const no[] = {
		"range", "host", "connection", "content-length",
		"transfer-encoding", "expect", "te", "upgrade", "if-range"
	};
	size_t i;

	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (strcasecmp(name, no[i]) == 0)
			return 1;
	return 0;
}

/* RFC 9110: a token, and a value without controls */
static int
header_ok(const char *name, const char *value)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *p;

	if (*name == '\0' || name[strspn(name, token)] != '\0')
		return 0;
	for (p = value; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return 0;
	return strlen(name) + strlen(value) < 8192;
}

/* the headers of an action as "Name: value" */
static int
headers(struct mr_json h, struct curl_slist **list, struct mr_err *e)
{
	struct curl_slist *more;
	const char *name, *value;
	char *line;
	int i, n = 0;

	if (mr_json_type(h) == MR_JSON_NONE || mr_json_type(h) == MR_JSON_NULL)
		return 0;
	if (mr_json_type(h) != MR_JSON_OBJECT)
		return mr_fail(e, "header is not an object");
	for (i = mr_json_first(h); i >= 0; i = mr_json_next(h, i)) {
		name = mr_json_key(h, i);
		value = mr_json_text(mr_json_val(h, i));
		if (value == NULL || !header_ok(name, value) || ++n > 32)
			return mr_fail(e, "a header that HTTP does not allow");
		if (ours(name))
			continue;
		/* libcurl's form for a header without a value */
		line = *value == '\0' ? mr_fmt("%s;", name) :
		    mr_fmt("%s: %s", name, value);
		more = curl_slist_append(*list, line);
		free(line);
		if (more == NULL)
			return mr_fail(e, "no memory");
		*list = more;
	}
	return 0;
}

/* the download action of one object */
static int
action(struct mr_json d, const struct origin *from, struct link *l,
    struct mr_err *e)
{
	struct origin to;
	const char *href;
	int may;

	href = mr_json_str(d, "href", NULL);
	if (href == NULL)
		return mr_fail(e, "no href");
	if (origin_of(href, &to, e) == -1)
		return -1;
	may = may_go(from, &to);
	origin_free(&to);
	if (!may)
		return mr_fail(e, "href is not https");
	if (headers(mr_json_get(d, "header"), &l->header, e) == -1)
		return -1;
	l->href = mr_strdup(href);
	l->expires = expiry(d);
	return 0;
}

/* what the answer says of one object */
static void
one(struct mr_json j, const struct object *o, const struct origin *from,
    struct answer *a)
{
	char shown[MR_SHOWN];
	struct mr_json error, d;
	struct mr_err e;
	const char *s;
	int64_t size;

	error = mr_json_get(j, "error");
	if (mr_json_type(error) == MR_JSON_OBJECT) {
		a->code = mr_json_int(error, "code", 0);
		s = mr_json_str(error, "message", "");
		a->text = mr_strdup(mr_show(shown, s, strlen(s)));
		return;
	}
	size = mr_json_int(j, "size", -1);
	d = mr_json_get(mr_json_get(j, "actions"), "download");
	if (mr_json_type(d) != MR_JSON_OBJECT)
		a->text = mr_strdup("no download action and no error");
	else if (size >= 0 && (uint64_t)size != o->size)
		a->text = mr_fmt("its size there is %lld, wanted %llu",
		    (long long)size, (unsigned long long)o->size);
	else if (action(d, from, &a->link, &e) == -1) {
		link_free(&a->link);
		a->text = mr_fmt("download action refused: %s", e.text);
	}
}

int
batch_parse(const char *buf, size_t len, struct object *const o[], size_t n,
    const struct origin *from, struct answer *a, struct mr_err *e)
{
	char shown[MR_SHOWN];
	struct mr_json j, list, item;
	struct mr_err why;
	const char *oid, *s;
	size_t i, k, many;

	if (mr_json_parse(&j, buf, len, &why) == -1)
		return mr_fail(e, "the answer is not JSON: %.200s", why.text);
	list = mr_json_get(j, "objects");
	s = mr_json_str(j, "hash_algo", "sha256");
	if (mr_json_type(list) != MR_JSON_ARRAY)
		mr_fail(e, "the answer has no list of objects");
	else if (strcmp(s, "sha256") != 0)
		mr_fail(e, "hash_algo is \"%s\", wanted sha256",
		    mr_show(shown, s, strlen(s)));
	else if (strcmp(s = mr_json_str(j, "transfer", "basic"), "basic") != 0)
		mr_fail(e, "transfer is \"%s\", wanted basic",
		    mr_show(shown, s, strlen(s)));
	else {
		memset(a, 0, n * sizeof(*a));
		many = mr_json_len(list);
		/* what was not asked for, and what comes twice, is nothing */
		for (i = 0; i < many; i++) {
			item = mr_json_at(list, i);
			oid = mr_json_str(item, "oid", "");
			for (k = 0; k < n && strcmp(oid, o[k]->oid) != 0; k++)
				;
			if (k < n && a[k].link.href == NULL &&
			    a[k].text == NULL)
				one(item, o[k], from, &a[k]);
		}
		for (k = 0; k < n; k++)
			if (a[k].link.href == NULL && a[k].text == NULL)
				a[k].text = mr_strdup("not in the answer");
		mr_json_free(j);
		return 0;
	}
	mr_json_free(j);
	return -1;
}

char *
batch_said(const char *buf, size_t len)
{
	char shown[MR_SHOWN];
	struct mr_json j;
	struct mr_err e;
	const char *s;
	char *said = NULL;

	if (buf == NULL || mr_json_parse(&j, buf, len, &e) == -1)
		return NULL;
	s = mr_json_str(j, "message", NULL);
	if (s != NULL)
		said = mr_strdup(mr_show(shown, s, strlen(s)));
	mr_json_free(j);
	return said;
}
