/* One request at a time for each handle; redirects are followed by hand, so
 * that each hop gets its own set of headers. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "lfs-fetch.h"

/* a copy of S without blanks around it, of at most N bytes; caller frees */
static char *
trimmed(const char *s, size_t n)
{
	while (n > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	while (n > 0 && strchr(" \t\r\n", s[n - 1]) != NULL)
		n--;
	return mr_fmt("%.*s", (int)n, s);
}

/* is LINE the header NAME? then *VALUE is its value, replaced */
static void
take(const char *line, size_t n, const char *name, char **value)
{
	size_t k;

	k = strlen(name);
	if (n > k && line[k] == ':' && strncasecmp(line, name, k) == 0) {
		free(*value);
		*value = trimmed(line + k + 1, n - k - 1);
	}
}

/* Retry-After: seconds or a date (RFC 9110 10.2.3); bounded to 300 s */
static int64_t
seconds(const char *s)
{
	uint64_t n;
	time_t at;

	if (mr_number(s, UINT64_MAX, &n) == 0)
		return n > 300 ? 300 : (int64_t)n;
	at = curl_getdate(s, NULL);
	if (at == -1)
		return -1;
	at -= time(NULL);
	return at < 0 ? 0 : at > 300 ? 300 : (int64_t)at;
}

static size_t
on_header(char *line, size_t one, size_t n, void *arg)
{
	struct request *r = arg;
	char *after = NULL;

	(void)one;
	/* a new status line: what an interim answer said is forgotten */
	if (n > 5 && strncmp(line, "HTTP/", 5) == 0) {
		free(r->location);
		free(r->content_range);
		r->location = r->content_range = NULL;
		r->retry_after = -1;
	}
	take(line, n, "location", &r->location);
	take(line, n, "content-range", &r->content_range);
	take(line, n, "retry-after", &after);
	if (after != NULL)
		r->retry_after = seconds(after);
	free(after);
	return n;
}

/* keeps an error's or a batch call's text, up to its limit */
static size_t
on_text(struct request *r, const char *buf, size_t n)
{
	size_t max = MAX_SAID;

	if (r->o == NULL && r->code == 200)
		max = MAX_ANSWER / MAX_BATCH * (r->n + 1);
	if (r->ntext + n > max) {
		r->overlong = 1;
		return 0;
	}
	r->text = mr_realloc(r->text, r->ntext + n);
	memcpy(r->text + r->ntext, buf, n);
	r->ntext += n;
	return n;
}

/* does "bytes N-M/T" go on where our part ends? RFC 9110 14.4 */
static int
range_fits(const struct request *r)
{
	unsigned long long from, to, total;
	char star;

	if (r->content_range == NULL || strchr(r->content_range, '+') != NULL ||
	    strchr(r->content_range, ' ') != strrchr(r->content_range, ' '))
		return 0;
	if (sscanf(r->content_range, "bytes %llu-%llu/%llu", &from, &to,
	    &total) == 3) {
		if (total != r->o->size)
			return 0;
	} else if (sscanf(r->content_range, "bytes %llu-%llu/%c", &from, &to,
	    &star) != 3 || star != '*')
		return 0;
	return from == r->o->part.have && to >= from && to < r->o->size;
}

/* The first bytes of a body have come: are they the object's? */
static int
accept_body(struct request *r)
{
	struct object *o = r->o;
	curl_off_t length = -1;

	curl_easy_getinfo(r->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (r->code == 206) {
		if (!range_fits(r)) {
			r->startover = 1;
			return 0;
		}
	} else {
		if (length >= 0 && (uint64_t)length != o->size) {
			r->wrong = 1;
			return 0;
		}
		if (o->part.have > 0) {	/* the range was not looked at */
			mr_progress_have(run.progress, -(int64_t)o->part.have);
			if (part_reset(o) == -1) {
				r->lost_write = errno;
				return 0;
			}
		}
	}
	o->part.begun = o->part.have;
	o->relinked = 0;
	return 1;
}

static size_t
on_body(char *buf, size_t one, size_t n, void *arg)
{
	struct request *r = arg;
	struct object *o = r->o;

	(void)one;
	if (r->code == 0)
		curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &r->code);
	if (o == NULL || (r->code != 200 && r->code != 206))
		return on_text(r, buf, n);
	if (!r->taken) {
		if (!accept_body(r))
			return 0;
		r->taken = 1;
	}
	if (n > o->size - o->part.have) {
		r->wrong = 1;
		return 0;
	}
	if (part_write(o, buf, n) == -1) {
		r->lost_write = errno;
		return 0;
	}
	mr_progress_add(run.progress, n);
	return n;
}

static struct request *
request_new(const char *url, struct curl_slist *header)
{
	struct request *r;
	struct mr_err e;

	r = mr_malloc(sizeof(*r));
	memset(r, 0, sizeof(*r));
	r->url = mr_strdup(url);
	if (origin_of(url, &r->origin, &e) == -1)
		abort();	/* nothing comes here that was not looked at */
	r->curl = curl_easy_init();
	for (; header != NULL; header = header->next)
		r->header = curl_slist_append(r->header, header->data);
	return r;
}

struct request *
request_batch(struct endpoint *ep, struct object *const o[], size_t n)
{
	struct request *r;
	char *url;

	url = mr_fmt("%s/objects/batch", ep->url);
	r = request_new(url, NULL);
	free(url);
	if (ep->origin.user != NULL)
		r->origin.user = mr_strdup(ep->origin.user);
	r->ep = ep;
	r->n = n;
	memcpy(r->asked, o, n * sizeof(struct object *));
	r->header = curl_slist_append(r->header,
	    "Accept: application/vnd.git-lfs+json");
	r->header = curl_slist_append(r->header,
	    "Content-Type: application/vnd.git-lfs+json");
	r->header = curl_slist_append(r->header, "Expect:");
	r->body = batch_body(o, n);
	return r;
}

struct request *
request_load(struct object *o, struct endpoint *ep)
{
	struct request *r;

	r = request_new(o->link.href, o->link.header);
	r->o = o;
	r->ep = ep;
	if (o->part.have > 0)
		r->range = mr_fmt("%llu-%llu",
		    (unsigned long long)o->part.have,
		    (unsigned long long)o->size - 1);
	return r;
}

/* Whom to believe: the file that the user named, or libcurl's. Its folder is
 * left out where the file is there: libcurl then reads it once, not for each
 * connection (0.1 s and 2.5 MB). */
static void
authorities(CURL *c)
{
	static const char *const names[] = {
		"CURL_CA_BUNDLE", "SSL_CERT_FILE", "GIT_SSL_CAINFO"
	};
	const char *file = NULL;
	size_t i;

	for (i = 0; i < 3 && (file == NULL || *file == '\0'); i++)
		file = getenv(names[i]);
	if (file != NULL && *file != '\0')
		curl_easy_setopt(c, CURLOPT_CAINFO, file);
	else
		file = curl_version_info(CURLVERSION_NOW)->cainfo;
	if (file != NULL && access(file, R_OK) == 0)
		curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
}

void
request_start(struct request *r, CURLM *multi)
{
	CURL *c = r->curl;
	const char *pair;

	r->code = 0;
	r->retry_after = -1;
	r->ntext = 0;
	r->taken = r->overlong = r->wrong = r->startover = 0;
	r->error[0] = '\0';
	if (c == NULL)
		err(MR_UNFIT, "libcurl: no handle");
	curl_easy_reset(c);
	curl_easy_setopt(c, CURLOPT_PRIVATE, r);
	curl_easy_setopt(c, CURLOPT_URL, r->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR,
	    r->origin.loopback ? "http,https" : "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	/* resumed parts want one body per answer, and few windows: not h2 */
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "model-rebuild/" MR_VERSION);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 1L);
	curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, run.n > 1 ? 16 * 1024L :
	    128 * 1024L);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->error);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, set.wait);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 512L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, set.wait);
	if (r->origin.loopback)
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	authorities(c);
	if (r->header != NULL)
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->header);
	if (r->body != NULL) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body);
		curl_easy_setopt(c, CURLOPT_TIMEOUT, 4 * set.wait);
	}
	if (r->range != NULL)
		curl_easy_setopt(c, CURLOPT_RANGE, r->range);
	pair = r->auth ? credentials(&r->origin) : NULL;
	if (pair != NULL) {
		curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(c, CURLOPT_USERPWD, pair);
	}
	if (curl_multi_add_handle(multi, c) != CURLM_OK)
		errx(MR_UNFIT, "libcurl: no handle");
}

/* LOCATION as it reads from URL; the caller frees, NULL if it is none */
static char *
resolved(const char *url, const char *location)
{
	char *s = NULL, *copy = NULL;
	CURLU *u;

	u = curl_url();
	if (u != NULL && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_URL, location, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_URL, &s, 0) == CURLUE_OK) {
		copy = mr_strdup(s);
		curl_free(s);
	}
	curl_url_cleanup(u);
	return copy;
}

int
redirected(const struct request *r, CURLcode rc)
{
	return (rc == CURLE_OK || r->overlong) && (r->code == 301 ||
	    r->code == 302 || r->code == 307 || r->code == 308 ||
	    (r->code == 303 && r->o != NULL));
}

int
request_redirect(struct request *r, struct mr_err *e)
{
	struct origin to;
	char *url;
	int same;

	if (r->location == NULL)
		return mr_fail(e, "%ld without a location", r->code);
	if (++r->hops > MAX_HOPS)
		return mr_fail(e, "more than %d redirects", MAX_HOPS);
	url = resolved(r->url, r->location);
	if (url == NULL || origin_of(url, &to, e) == -1) {
		free(url);
		return mr_fail(e, "redirected to no https URL");
	}
	if (!may_go(&r->origin, &to))
		mr_fail(e, "redirected from https to http at %.200s", to.host);
	else if (r->o == NULL && !listed(&to))
		mr_fail(e, "redirected to %.200s, which is not on the list of "
		    "hosts (-H)", to.host);
	else {
		same = to.https == r->origin.https &&
		    strcmp(to.host, r->origin.host) == 0;
		/* what was meant for one host is not told to another */
		if (!same && r->o != NULL) {
			curl_slist_free_all(r->header);
			r->header = NULL;
		}
		if (!same)
			r->auth = 0;
		free(r->url);
		origin_free(&r->origin);
		r->url = url;
		r->origin = to;
		return 1;
	}
	free(url);
	origin_free(&to);
	return -1;
}

/* does the action bring its own Authorization? */
static int
authorized(const struct curl_slist *h)
{
	for (; h != NULL; h = h->next)
		if (strncasecmp(h->data, "authorization:", 14) == 0)
			return 1;
	return 0;
}

int
request_login(struct request *r)
{
	if (r->auth || authorized(r->header) ||
	    credentials(&r->origin) == NULL)
		return 0;
	r->auth = 1;
	return 1;
}

void
request_free(struct request *r)
{
	curl_easy_cleanup(r->curl);
	curl_slist_free_all(r->header);
	origin_free(&r->origin);
	free(r->url);
	free(r->body);
	free(r->range);
	free(r->location);
	free(r->content_range);
	free(r->text);
	free(r);
}
