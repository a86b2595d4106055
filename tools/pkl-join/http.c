/* A file of the set on a web server. Only https, but for this machine. */
#include <arpa/inet.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <curl/curl.h>

#include "pkl-join.h"

enum {
	HOPS = 5,		/* redirects */
	PAUSE_MAX = 30,		/* seconds between two tries */
	ERROR_MAX = 1 << 16	/* bytes of an error page that may come */
};

/* one file on its way, by one answer or several */
struct answer {
	CURL		*curl;
	const struct taker *to;
	uint64_t	 size;		/* of the file, as was told */
	uint64_t	 got;		/* bytes handed on, of all tries */
	uint64_t	 skip;		/* of this answer: had already */
	uint64_t	 junk;		/* bytes of an error page */
	long		 code;
	struct mr_err	*e;
	int		 refused;	/* by the taker */
	int		 overlong;
};

static int
is_loopback(const char *host)
{
	unsigned char a[4];

	return strcasecmp(host, "localhost") == 0 ||
	    strcmp(host, "[::1]") == 0 ||
	    (inet_pton(AF_INET, host, a) == 1 && a[0] == 127);
}

int
http_is(const char *base, struct mr_err *e)
{
	char *host = NULL, *query = NULL, *part = NULL;
	int https, ok = -1;
	CURLU *u;

	https = strncasecmp(base, "https://", 8) == 0;
	if (!https && strncasecmp(base, "http://", 7) != 0)
		return 0;
	u = curl_url();
	if (u == NULL || curl_url_set(u, CURLUPART_URL, base, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		mr_fail(e, "not a URL");
	else if (curl_url_get(u, CURLUPART_QUERY, &query, 0) == CURLUE_OK ||
	    curl_url_get(u, CURLUPART_FRAGMENT, &part, 0) == CURLUE_OK)
		mr_fail(e, "a URL with ? or #: .sha256 cannot follow it");
	else if (!https && !is_loopback(host))
		mr_fail(e, "http beyond this machine: wanted https");
	else
		ok = 1;
	curl_free(host);
	curl_free(query);
	curl_free(part);
	curl_url_cleanup(u);
	return ok;
}

static size_t
on_body(char *buf, size_t one, size_t n, void *arg)
{
	struct answer *a = arg;
	size_t all = n, skipped;

	(void)one;
	if (a->code == 0) {
		curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &a->code);
		/* the range was not looked at: the body begins anew */
		a->skip = a->code == 200 ? a->got : 0;
	}
	if (a->code != 200 && a->code != 206) {
		a->junk += n;
		return a->junk > ERROR_MAX ? 0 : n;
	}
	skipped = a->skip < n ? (size_t)a->skip : n;
	a->skip -= skipped;
	buf += skipped;
	n -= skipped;
	if (n > a->size - a->got) {
		a->overlong = 1;
		return 0;
	}
	a->got += n;
	if (n > 0 && a->to->take(a->to->arg, buf, n, a->e) == -1) {
		a->refused = 1;
		return 0;
	}
	return all;
}

/* the one handle: its connection is used again */
static CURL *
handle(void)
{
	static CURL *c;

	if (c == NULL)
		c = curl_easy_init();
	else
		curl_easy_reset(c);
	return c;
}

/* asks once; the reason why it failed is in WHY */
static CURLcode
ask(const struct source *s, const char *url, int head, struct answer *a,
    char why[CURL_ERROR_SIZE])
{
	char *range = NULL;
	CURLcode rc;
	CURL *c;
	int https;

	https = strncasecmp(url, "https://", 8) == 0;
	a->curl = c = handle();
	a->code = 0;
	a->junk = 0;
	why[0] = '\0';
	if (c == NULL)
		return CURLE_OUT_OF_MEMORY;
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, https ? "https" : "http");
	curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)HOPS);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "model-rebuild/" MR_VERSION);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, s->wait);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, s->wait);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 256 * 1024L);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, a);
	if (!https)
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	if (head)
		curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	if (a->got > 0) {
		range = mr_fmt("%llu-", (unsigned long long)a->got);
		curl_easy_setopt(c, CURLOPT_RANGE, range);
	}
	rc = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &a->code);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, NULL);
	free(range);
	return rc;
}

/* seconds before the next try: what the server asks for, or more each time */
static unsigned
seconds(CURL *c, unsigned try)
{
	curl_off_t after = 0;

	curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &after);
	if (after <= 0)
		after = (curl_off_t)1 << (try < 5 ? try : 5);
	return after > PAUSE_MAX ? PAUSE_MAX : (unsigned)after;
}

/* may it be otherwise in a while? */
static int
passing(CURLcode rc, long code)
{
	if (rc == CURLE_OK)
		return code == 408 || code == 425 || code == 429 || code >= 500;
	return rc != CURLE_PEER_FAILED_VERIFICATION &&
	    rc != CURLE_SSL_CACERT_BADFILE && rc != CURLE_URL_MALFORMAT &&
	    rc != CURLE_UNSUPPORTED_PROTOCOL && rc != CURLE_TOO_MANY_REDIRECTS;
}

/* Asks until there is an answer; a status. */
static int
request(const struct source *s, const char *suffix, int head,
    struct answer *a, struct mr_err *e)
{
	char why[CURL_ERROR_SIZE], *url;
	CURLcode rc = CURLE_OK;
	struct timespec pause = { 0, 0 };
	unsigned try = 0;
	int status = MR_UNFIT;

	url = mr_fmt("%s%s", s->base, suffix);
	for (;;) {
		rc = ask(s, url, head, a, why);
		if (rc == CURLE_OK && (a->code == 200 || a->code == 206)) {
			status = MR_OK;
			break;
		}
		if (a->refused)
			break;
		if (a->got > 0 && a->got == a->size) {
			status = MR_OK;	/* cut off behind the last byte */
			break;
		}
		if (a->overlong) {
			mr_fail(e, "%s: goes on after %llu bytes", url,
			    (unsigned long long)a->size);
			status = MR_NO;
			break;
		}
		if (rc == CURLE_OK || a->junk > ERROR_MAX)
			mr_fail(e, "%s: %ld", url, a->code);
		else
			mr_fail(e, "%s: %s", url, why[0] != '\0' ? why :
			    curl_easy_strerror(rc));
		if (rc == CURLE_OK && (a->code == 404 || a->code == 410)) {
			status = MR_NO;
			break;
		}
		if (!passing(rc, a->code))
			break;
		status = MR_AGAIN;
		if (++try >= s->tries)
			break;
		pause.tv_sec = seconds(a->curl, try - 1);
		nanosleep(&pause, NULL);
	}
	free(url);
	return status;
}

int
http_size(const struct source *s, const char *suffix, uint64_t *size,
    struct mr_err *e)
{
	struct answer a;
	curl_off_t length = -1;
	int status;

	memset(&a, 0, sizeof(a));
	status = request(s, suffix, 1, &a, e);
	if (status != MR_OK)
		return status;
	curl_easy_getinfo(a.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	*size = length < 0 ? UINT64_MAX : (uint64_t)length;
	return MR_OK;
}

int
http_read(const struct source *s, const char *suffix, uint64_t size,
    const struct taker *t, struct mr_err *e)
{
	struct answer a;
	int status;

	memset(&a, 0, sizeof(a));
	a.to = t;
	a.size = size;
	a.e = e;
	status = request(s, suffix, 0, &a, e);
	if (status == MR_OK && size != UINT64_MAX && a.got != size) {
		mr_fail(e, "%s%s: %llu bytes came, wanted %llu", s->base,
		    suffix, (unsigned long long)a.got,
		    (unsigned long long)size);
		status = MR_NO;
	}
	return status;
}
