/* An object's way through the endpoints, and what failures mean: which pass,
 * which hold for this endpoint, which end the matter. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lfs-fetch.h"

/* ms to wait after TRIES failures: 250 doubling to 10 s, less up to a
 * quarter, so that many clients do not come back together */
int64_t
pause_ms(int tries, int64_t retry_after)
{
	static uint64_t r;
	int64_t ms = 250;

	if (retry_after >= 0)
		return retry_after * 1000;
	while (--tries > 0 && ms < 10000)
		ms *= 2;
	if (ms > 10000)
		ms = 10000;
	if (r == 0)
		r = (uint64_t)mr_now_ms() * 2654435761u ^
		    (uint64_t)getpid() << 32;
	r = r * 6364136223846793005u + 1442695040888963407u;
	return ms - ms / 4 * (int64_t)(r >> 54) / 1024;
}

/* shows a wait that a person would notice */
void
show_wait(const char *name, const char *why, int64_t ms, int tries)
{
	if (ms >= 1000)
		notice("%s: %s, trying again in %lld s (try %d of %d)", name,
		    why, (long long)(ms + 999) / 1000, tries + 1, set.tries);
}

/* adds to the story of an object; the worst of all endpoints counts */
static void
tell(struct object *o, int status, const char *where, const char *why)
{
	char *s;

	if (where != NULL)
		s = mr_fmt("%s%s%s (%s)", o->story != NULL ? o->story : "",
		    o->story != NULL ? ", " : "", where, why);
	else {
		s = mr_strdup(why);
		o->here = 1;
	}
	free(o->story);
	o->story = s;
	o->status = mr_worse(o->status, status);
}

/* lets go of the part; without a store it would be lost, so it is kept */
void
let_go(struct object *o)
{
	if (set.nstores == 0 || o->part.fd == -1)
		return;
	if (run.progress != NULL)
		mr_progress_have(run.progress, -(int64_t)o->part.have);
	part_close(o);
}

/* the object is not to be had, or this machine cannot take it */
void
lose(struct object *o, int status, const char *why)
{
	if (why != NULL)
		tell(o, status, NULL, why);
	let_go(o);
	part_close(o);
	link_free(&o->link);
	o->state = LOST;
}

/* sends O to the first endpoint from o->at on that is not dead */
void
settle(struct object *o)
{
	struct endpoint *ep;

	link_free(&o->link);
	let_go(o);
	o->state = ASK;
	o->tries = o->relinked = o->norange = 0;
	o->when = 0;
	for (; o->at < set.nendpoints; o->at++) {
		ep = &set.endpoint[o->at];
		if (ep->dead == NULL)
			return;
		if (!ep->skipped)
			tell(o, ep->status, ep->origin.host, ep->dead);
	}
	if (o->story != NULL)
		lose(o, o->status, NULL);
	else if (set.nendpoints == 0)
		lose(o, MR_NO, "it is in no store, and no endpoint was named");
	else
		lose(o, MR_UNFIT, "it is in no store, and no endpoint may be "
		    "asked");
}

/* this endpoint cannot serve the object */
void
give_up(struct object *o, int status, const char *why)
{
	tell(o, status, set.endpoint[o->at].origin.host, why);
	o->at++;
	settle(o);
}

/* the download failed for now */
void
try_later(struct object *o, int64_t retry_after, const char *why)
{
	int64_t ms;
	char *tried;

	if (++o->tries >= set.tries) {
		tried = mr_fmt("%s, tried %d times", why, o->tries);
		give_up(o, MR_AGAIN, tried);
		free(tried);
		return;
	}
	ms = pause_ms(o->tries, retry_after);
	show_wait(name_of(o), why, ms, o->tries);
	let_go(o);
	o->when = mr_now_ms() + ms;
	o->state = READY;
}

void
done(struct object *o)
{
	if (o->at > 0 && o->at < set.nendpoints && o->link.href != NULL)
		notice("%s: came from %s%s%s", name_of(o),
		    set.endpoint[o->at].origin.host,
		    o->story != NULL ? ", not from " : "",
		    o->story != NULL ? o->story : "");
	link_free(&o->link);
	o->status = MR_OK;
	o->state = DONE;
}

/* is a refusal about quota? it holds for all objects, and for long */
int
over_quota(long code, const char *said)
{
	return code == 507 || code == 509 || (code == 403 && said != NULL &&
	    (strstr(said, "quota") != NULL || strstr(said, "Quota") != NULL));
}

/* does the same request make sense again, later? */
int
passing(long code)
{
	return code == 408 || code == 429 || (code >= 500 && code != 501 &&
	    code != 505 && code != 507 && code != 509);
}

/* may a transport error go away by itself? */
int
hopeless(CURLcode rc)
{
	return rc == CURLE_PEER_FAILED_VERIFICATION ||
	    rc == CURLE_SSL_CACERT_BADFILE || rc == CURLE_SSL_CIPHER ||
	    rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL;
}

/* "404: Not found here"; the caller frees */
char *
code_and_text(long code, const char *said)
{
	return said != NULL && *said != '\0' ?
	    mr_fmt("%ld: %s", code, said) : mr_fmt("%ld", code);
}
