/* The batch calls: which objects are asked for, what the answers mean. */
#include <stdlib.h>
#include <string.h>

#include "lfs-fetch.h"

/* no object asks this endpoint any more */
static void
bury(struct endpoint *ep, int status, const char *why)
{
	free(ep->dead);
	ep->dead = mr_strdup(why);
	ep->status = status;
}

/* takes the answer of a batch call to each object */
static void
answered(struct request *r)
{
	struct answer a[MAX_BATCH];
	struct object *o;
	struct mr_err e;
	char *why;
	size_t i;

	if (batch_parse(r->text != NULL ? r->text : "", r->ntext, r->asked,
	    r->n, &r->origin, a, &e) == -1) {
		bury(r->ep, MR_AGAIN, e.text);
		return;
	}
	r->ep->tries = 0;
	for (i = 0; i < r->n; i++) {
		o = r->asked[i];
		o->link = a[i].link;
		if (o->link.href != NULL) {
			o->state = READY;
			continue;
		}
		why = a[i].code > 0 ? code_and_text(a[i].code, a[i].text) :
		    mr_strdup(a[i].text);
		if (passing(a[i].code)) {
			o->state = ASK;
			o->when = mr_now_ms() + pause_ms(++o->tries, -1);
			if (o->tries >= set.tries)
				give_up(o, MR_AGAIN, why);
		} else
			give_up(o, a[i].code == 0 ||
			    over_quota(a[i].code, a[i].text) ? MR_AGAIN :
			    MR_NO, why);
		free(why);
		free(a[i].text);
	}
}

/* a batch call that brought no answer */
static void
unanswered(struct request *r, CURLcode rc)
{
	struct endpoint *ep = r->ep;
	char *said = NULL, *why, *tried;
	int64_t ms;
	size_t i;

	if (rc != CURLE_OK && (r->code == 0 || r->code == 200)) {
		why = mr_strdup(r->overlong ? "the answer is too long" :
		    r->error[0] != '\0' ? r->error : curl_easy_strerror(rc));
	} else {
		said = batch_said(r->text, r->ntext);
		why = r->code == 401 && !r->auth ?
		    mr_strdup(NO_LOGIN) :
		    code_and_text(r->code, said);
		rc = CURLE_OK;
	}
	if (r->code == 413 && r->n > 1)
		ep->max = r->n / 2;
	else if (rc == CURLE_OK &&
	    (r->code == 404 || r->code == 410 || r->code == 422))
		/* some servers mean these objects, not the repository */
		for (i = 0; i < r->n; i++)
			give_up(r->asked[i], MR_NO, why);
	else if ((r->overlong && r->code == 200) || hopeless(rc) ||
	    over_quota(r->code, said))
		bury(ep, rc == CURLE_SSL_CACERT_BADFILE ? MR_UNFIT : MR_AGAIN,
		    why);
	else if (rc == CURLE_OK && !passing(r->code))
		bury(ep, r->code >= 400 && r->code < 500 ? MR_NO : MR_AGAIN,
		    why);
	else if (++ep->tries >= set.tries) {
		tried = mr_fmt("%s, tried %d times", why, ep->tries);
		bury(ep, MR_AGAIN, tried);
		free(tried);
	} else {
		ms = pause_ms(ep->tries, r->retry_after);
		show_wait(ep->url, why, ms, ep->tries);
		ep->when = mr_now_ms() + ms;
	}
	free(said);
	free(why);
}

/* a batch call has ended */
void
batch_ended(struct request *r, CURLcode rc)
{
	struct mr_err e;
	size_t i;

	if (redirected(r, rc)) {
		if (request_redirect(r, &e) == 1) {
			request_start(r, run.multi);
			return;
		}
		bury(r->ep, MR_AGAIN, e.text);
	} else if (r->code == 401 && request_login(r)) {
		request_start(r, run.multi);
		return;
	}
	run.asking = 0;
	for (i = 0; i < r->n; i++)
		r->asked[i]->state = ASK;
	if (rc == CURLE_OK && r->code == 200)
		answered(r);
	else if (r->ep->dead == NULL)
		unanswered(r, rc);
	request_free(r);
}

/* Is O to be asked for, and not too early? */
static int
due(const struct object *o, int64_t now)
{
	return o->state == ASK && o->when <= now &&
	    set.endpoint[o->at].when <= now;
}

int
may_ask(int64_t now)
{
	size_t i, ready = run.loads;

	for (i = 0; i < run.n; i++)
		ready += run.all[i]->state == READY && run.all[i]->when <= now;
	return !run.asking && ready < MAX_LOADS;
}

void
ask(int64_t now)
{
	struct object *some[MAX_BATCH], *o;
	struct endpoint *ep = NULL;
	struct request *r;
	size_t i, n = 0;

	for (i = 0; i < run.n; i++) {
		o = run.all[i];
		if (o->state == ASK && set.endpoint[o->at].dead != NULL)
			settle(o);
	}
	for (i = 0; i < run.n && n < MAX_BATCH && may_ask(now); i++) {
		o = run.all[i];
		if (!due(o, now))
			continue;
		if (ep == NULL)
			ep = &set.endpoint[o->at];
		if (ep == &set.endpoint[o->at] && n < ep->max)
			some[n++] = o;
	}
	if (n == 0)
		return;
	r = request_batch(ep, some, n);
	for (i = 0; i < n; i++)
		some[i]->state = ASKED;
	run.asking = 1;
	request_start(r, run.multi);
}
