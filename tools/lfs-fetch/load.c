/* The downloads: from a link to a whole, checked object. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lfs-fetch.h"

/* all bytes are there: are they the object? */
static void
verify(struct object *o)
{
	char hex[MR_HEX], *bad;
	struct mr_err e;
	int mixed = o->part.begun > 0, rc;

	rc = part_holds(o, hex);
	if (rc == -1) {
		lose(o, MR_UNFIT, strerror(errno));
	} else if (rc == 1) {
		if (part_commit(o, &e) == -1)
			lose(o, MR_UNFIT, e.text);
		else
			done(o);
	} else if (mixed) {
		/* the fault may lie in what was there: once in one piece */
		mr_progress_have(run.progress, -(int64_t)o->part.have);
		o->norange = 1;
		o->state = READY;
		if (part_reset(o) == -1)
			lose(o, MR_UNFIT, strerror(errno));
	} else {
		mr_progress_have(run.progress, -(int64_t)o->part.have);
		bad = part_bad(o);
		say("%s: sha256 from %s is %s%s%s", name_of(o),
		    set.endpoint[o->at].origin.host, hex,
		    bad != NULL ? ", the body is kept as " : "",
		    bad != NULL ? bad : "");
		free(bad);
		give_up(o, MR_NO, "wrong bytes");
	}
}

/* a download was refused with an HTTP status */
static void
refused(struct request *r)
{
	struct object *o = r->o;
	char *said, *why;

	said = batch_said(r->text, r->ntext);
	why = r->code == 401 && !r->auth ? mr_strdup(NO_LOGIN) :
	    code_and_text(r->code, said);
	if (r->code == 416 && o->part.have > 0) {
		r->startover = 1;
	} else if (over_quota(r->code, said)) {
		give_up(o, MR_AGAIN, why);
	} else if ((r->code == 401 || r->code == 403) && !o->relinked) {
		/* the link may have expired while it waited: a new one */
		link_free(&o->link);
		let_go(o);
		o->relinked = 1;
		o->state = ASK;
	} else if (passing(r->code) || r->code == 416 || r->code < 400) {
		try_later(o, r->retry_after, why);
	} else
		give_up(o, MR_NO, why);
	free(why);
	free(said);
}

/* what came is of no use as a continuation: once from the start */
static void
start_over(struct object *o)
{
	int again = o->norange || o->part.have == 0;

	mr_progress_have(run.progress, -(int64_t)o->part.have);
	o->norange = 1;
	if (part_reset(o) == -1)
		lose(o, MR_UNFIT, strerror(errno));
	else if (again)
		try_later(o, -1, "the wrong range came");
	else
		o->state = READY;
}

/* a body has come, or a part of it */
static void
loaded(struct request *r, CURLcode rc)
{
	struct object *o = r->o;
	char *why;

	if (r->lost_write != 0) {
		lose(o, MR_UNFIT, strerror(r->lost_write));
	} else if (r->wrong) {
		if (r->taken) {
			mr_progress_have(run.progress, -(int64_t)o->part.have);
			part_reset(o);
		}
		why = mr_fmt("a body of another size, wanted %llu bytes",
		    (unsigned long long)o->size);
		give_up(o, MR_NO, why);
		free(why);
	} else if (r->taken && o->part.have == o->size) {
		verify(o);
	} else {
		/* what comes further than ever is worth new tries */
		if (r->taken && o->part.have >= o->best + MR_BUF) {
			o->best = o->part.have;
			o->tries = 0;
		}
		try_later(o, r->retry_after, rc == CURLE_OK ?
		    "the body is too short" : r->error[0] != '\0' ? r->error :
		    curl_easy_strerror(rc));
	}
}

/* a download has ended */
void
load_ended(struct request *r, CURLcode rc)
{
	struct object *o = r->o;
	struct mr_err e;

	if (redirected(r, rc)) {
		if (request_redirect(r, &e) == 1) {
			request_start(r, run.multi);
			return;
		}
		run.loads--;
		give_up(o, MR_AGAIN, e.text);
	} else if (r->code == 401 && request_login(r)) {
		request_start(r, run.multi);
		return;
	} else {
		run.loads--;
		if (r->code == 200 || r->code == 206 || r->code == 0) {
			if (hopeless(rc))
				give_up(o, MR_AGAIN, r->error);
			else if (!r->startover)
				loaded(r, rc);
		} else
			refused(r);
		if (r->startover)
			start_over(o);
	}
	request_free(r);
}

/* Has another process finished the object since we looked? */
static int
finished_elsewhere(struct object *o)
{
	struct mr_err e;
	int fd;

	fd = store_find(o);
	if (fd == -1)
		return 0;
	if (deliver(o, fd, &e) == -1)
		lose(o, MR_UNFIT, e.text);
	else {
		link_free(&o->link);
		done(o);
	}
	close(fd);
	return 1;
}

/* opens O's part: 1, or 0: nothing more to do now */
static int
open_part(struct object *o, int64_t now)
{
	struct mr_err e;
	int fresh = o->part.fd == -1, rc;

	rc = part_open(o, &e);
	if (rc == -1) {
		lose(o, MR_UNFIT, e.text);
		return 0;
	}
	/* under the lock nobody else can finish it: no second download */
	if (fresh && finished_elsewhere(o)) {
		if (rc == 1)
			part_reset(o);
		part_close(o);
		return 0;
	}
	if (rc == 1) {
		if (fresh)
			mr_progress_have(run.progress, (int64_t)o->part.have);
		return 1;
	}
	if (o->busy == 0)
		o->busy = now;
	else if (o->busy > 0 && now - o->busy > 2000) {
		notice("%s: another lfs-fetch has it, waiting", name_of(o));
		o->busy = -1;
	}
	o->when = now + 100;
	return 0;
}

void
load(struct object *o, int64_t now)
{
	if (o->link.expires != 0 && o->link.expires <= now && !o->relinked) {
		link_free(&o->link);
		o->relinked = 1;
		o->state = ASK;
		return;
	}
	if (!open_part(o, now))
		return;
	if (o->norange && o->part.have > 0) {
		mr_progress_have(run.progress, -(int64_t)o->part.have);
		if (part_reset(o) == -1) {
			lose(o, MR_UNFIT, strerror(errno));
			return;
		}
	}
	if (o->part.have == o->size) {
		verify(o);
		return;
	}
	o->state = LOAD;
	run.loads++;
	request_start(request_load(o, &set.endpoint[o->at]), run.multi);
}
