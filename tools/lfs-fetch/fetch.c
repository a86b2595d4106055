/* All objects from all endpoints: the loop. */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "lfs-fetch.h"

struct run run;

/* ms until something can be done for O, if nothing comes before */
static int64_t
idle(const struct object *o, int64_t now)
{
	int64_t at = o->when;

	if (o->state == ASK && set.endpoint[o->at].when > at)
		at = set.endpoint[o->at].when;
	if ((o->state == READY || o->state == ASK) && at > now)
		return at - now < 1000 ? at - now : 1000;
	if ((o->state == READY && run.loads < MAX_LOADS) ||
	    (o->state == ASK && may_ask(now)))
		return 0;
	return 1000;
}

/* Starts what can start; ms until something else can, -1: all has ended. */
static int64_t
advance(void)
{
	int64_t now, next = -1, ms;
	size_t i;

	now = mr_now_ms();
	for (i = 0; i < run.n; i++)
		if (run.all[i]->state == READY && run.all[i]->when <= now &&
		    run.loads < MAX_LOADS)
			load(run.all[i], now);
	ask(now);
	for (i = 0; i < run.n && next != 0; i++) {
		if (run.all[i]->state == DONE || run.all[i]->state == LOST)
			continue;
		ms = idle(run.all[i], now);
		if (next == -1 || ms < next)
			next = ms;
	}
	return next;
}

/* what is under way, for the bar; the caller frees */
static char *
label(void)
{
	const struct object *o = run.all[0];
	const char *base;

	if (run.n > 1)
		return mr_fmt("%zu objects", run.n);
	if (o->path == NULL)
		return mr_fmt("%.12s", o->oid);
	base = strrchr(o->path, '/');
	return mr_strdup(base != NULL ? base + 1 : o->path);
}

/* says who will not be asked, starts the bar and libcurl */
static void
begin(void)
{
	uint64_t total = 0;
	char *what;
	size_t i;

	for (i = 0; i < set.nendpoints; i++)
		if (set.endpoint[i].skipped)
			warnx("endpoint %s: %s, skipped", set.endpoint[i].url,
			    set.endpoint[i].dead);
	for (i = 0; i < run.n; i++)
		total += run.all[i]->size;
	what = label();
	run.progress = mr_progress_new(what, total, set.quiet);
	free(what);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (run.multi = curl_multi_init()) == NULL)
		errx(MR_UNFIT, "libcurl: cannot start");
	curl_multi_setopt(run.multi, CURLMOPT_MAXCONNECTS, (long)MAX_LOADS + 1);
}

void
fetch(struct object *const o[], size_t n)
{
	struct request *r;
	CURLMsg *m;
	CURLcode rc;
	int64_t ms;
	size_t i;
	int left;

	run.all = o;
	run.n = n;
	begin();
	for (i = 0; i < n; i++)
		settle(o[i]);
	while ((ms = advance()) >= 0) {
		curl_multi_perform(run.multi, &left);
		while ((m = curl_multi_info_read(run.multi, &left)) != NULL) {
			rc = m->data.result;
			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
			curl_multi_remove_handle(run.multi, r->curl);
			curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE,
			    &r->code);
			if (r->o != NULL)
				load_ended(r, rc);
			else
				batch_ended(r, rc);
			ms = 0;
		}
		if (ms > 0)
			curl_multi_poll(run.multi, NULL, 0, (int)ms, NULL);
	}
	curl_multi_cleanup(run.multi);
	curl_global_cleanup();
	mr_progress_end(run.progress);
	run.progress = NULL;
}
