/* LFS pointers -> the objects' bytes, from local stores and LFS endpoints. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lfs-fetch.h"

struct settings set = { .tries = 8, .wait = 60 };

static int
usage(FILE *f)
{
	fputs("usage: lfs-fetch [-hqV] [-e ENDPOINT] ... [-H HOST] ... "
	    "[-S STORE] ...\n"
	    "                 [-t TRIES] [-w SECONDS] [-i | -o FILE]\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

const char *
name_of(const struct object *o)
{
	static char *name;

	free(name);
	name = o->path == NULL ? mr_strdup(o->oid) :
	    mr_fmt("%s %s", o->oid, o->path);
	return name;
}

void
say(const char *fmt, ...)
{
	va_list ap;

	if (run.progress != NULL)
		mr_progress_clear(run.progress);
	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
}

void
notice(const char *fmt, ...)
{
	va_list ap;

	if (set.quiet)
		return;
	if (run.progress != NULL)
		mr_progress_clear(run.progress);
	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
}

/* Delivers O from a store, or from a whole part: DONE, LOST, or neither. */
static void
locally(struct object *o)
{
	struct mr_err e;
	int fd, rc;

	fd = store_find(o);
	rc = fd == -1 ? part_whole(o, &e) : deliver(o, fd, &e) == -1 ? -1 : 1;
	if (fd != -1)
		close(fd);
	if (rc == -1)
		lose(o, MR_UNFIT, e.text);
	else if (rc == 1)
		o->state = DONE;
}

/* Copies O from its twin, which has come. */
static void
from_twin(struct object *o)
{
	struct mr_err e;
	int fd;

	if (o->twin->state == LOST) {
		o->state = LOST;
		o->status = o->twin->status;
		return;
	}
	fd = set.nstores > 0 ? store_find(o) : open_checked(o->twin->path, o);
	if (fd == -1)
		lose(o, MR_UNFIT, "it was here, and is gone");
	else if (deliver(o, fd, &e) == -1)
		lose(o, MR_UNFIT, e.text);
	else
		o->state = DONE;
	if (fd != -1)
		close(fd);
}

/* says once for all what did not come; the worst status */
static int
report(struct object *const o[], size_t n)
{
	const struct object *why;
	size_t i;
	int status = MR_OK;

	for (i = 0; i < n; i++) {
		if (o[i]->state == DONE)
			continue;
		why = o[i]->story != NULL ? o[i] : o[i]->twin;
		warnx("%s: %s%s", name_of(o[i]), why->here ? "" :
		    why->status == MR_NO ? "lost at " : "not fetched from ",
		    why->story);
		status = mr_worse(status, why->status);
	}
	return status;
}

/* Brings all objects: from here, from elsewhere, then copies of those. */
static int
bring(struct object *const o[], size_t n)
{
	struct object **far;
	struct mr_err e;
	size_t i, k = 0, twins = 0;

	far = mr_malloc((n + 1) * sizeof(struct object *));
	for (i = 0; i < n; i++) {
		if (o[i]->size == 0)
			mr_sha256_buf("", 0, e.text);
		if (o[i]->size == 0 && strcmp(e.text, o[i]->oid) != 0)
			lose(o[i], MR_NO, "size is 0, but the oid is not that "
			    "of nothing");
		else
			locally(o[i]);
		if (o[i]->state != ASK)
			continue;
		if (o[i]->twin == NULL)
			far[k++] = o[i];
		else
			twins++;
	}
	if (k > 0 && room(far, k, &e) == -1) {
		warnx("%s", e.text);
		free(far);
		return MR_UNFIT;
	}
	if (k > 0)
		fetch(far, k);
	free(far);
	for (i = 0; i < n && twins > 0; i++)
		if (o[i]->state == ASK)
			from_twin(o[i]);
	return report(o, n);
}

/* copies plain content, which begins with the N bytes of BUF */
static int
pass(const char *file, char *buf, size_t n)
{
	struct mr_out out = { .fd = STDOUT_FILENO };
	struct mr_err e;
	ssize_t got = (ssize_t)n;
	char *more;

	if (file != NULL && mr_out_open(&out, file, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	more = mr_malloc(MR_BUF / 4);
	memcpy(more, buf, n);
	while (got > 0) {
		if (mr_write(out.fd, more, (size_t)got) == -1) {
			warn("%s", file != NULL ? file : "standard output");
			break;
		}
		got = mr_read(STDIN_FILENO, more, MR_BUF / 4);
		if (got == -1)
			warn("standard input");
	}
	free(more);
	if (got != 0) {
		if (file != NULL)
			mr_out_abort(&out);
		return MR_UNFIT;
	}
	if (file != NULL && mr_out_commit(&out, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	return MR_OK;
}

/* one pointer, or plain content, on standard input */
static int
filter(const char *file)
{
	struct mr_pointer p;
	struct object *o;
	struct mr_err e;
	char buf[MR_POINTER_MAX];
	ssize_t n;

	n = mr_read(STDIN_FILENO, buf, sizeof(buf));
	if (n == -1)
		err(MR_UNFIT, "standard input");
	switch (mr_pointer_parse(buf, (size_t)n, &p, &e)) {
	case 0:
		return pass(file, buf, (size_t)n);
	case 1:
		break;
	default:
		warnx("standard input: %s", e.text);
		return MR_NO;
	}
	if (p.notice != NULL)
		notice("%s: %s", p.oid, p.notice);
	o = object_new(p.oid, p.size, file);
	return bring(&o, 1);
}

static int
many(void)
{
	struct object **o;
	struct mr_err e;
	size_t n;

	o = read_list(&n, &e);
	if (o == NULL) {
		warnx("%s", e.text);
		return MR_NO;
	}
	return bring(o, n);
}

/* takes the endpoints in order; one that is named twice counts once */
static void
endpoints(char *const text[], size_t n)
{
	struct endpoint *ep;
	size_t i, k;

	for (i = 0; i < n; i++) {
		ep = &set.endpoint[set.nendpoints];
		endpoint_init(ep, text[i]);
		for (k = 0; k < set.nendpoints; k++)
			if (strcmp(ep->url, set.endpoint[k].url) == 0)
				break;
		if (k == set.nendpoints)
			set.nendpoints++;
	}
}

/* A closed standard descriptor must not become one of our files. */
static void
guard(int wants_stdout)
{
	int fd;

	if (wants_stdout && fcntl(STDOUT_FILENO, F_GETFD) == -1)
		err(MR_UNFIT, "standard output");
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Is S a number of 1 to MAX? */
static int
number(const char *s, uint64_t max, uint64_t *n)
{
	return mr_number(s, max, n) == 0 && *n > 0;
}

int
main(int argc, char *argv[])
{
	char *endpoint[MAX_ENDPOINTS];
	const char *file = NULL;
	size_t nendpoints = 0;
	uint64_t n;
	int c, list = 0;

	while ((c = getopt(argc, argv, "e:H:S:t:w:o:ihqV")) != -1)
		switch (c) {
		case 'e':
			if (nendpoints == MAX_ENDPOINTS)
				errx(MR_UNFIT, "more than %d endpoints",
				    MAX_ENDPOINTS);
			endpoint[nendpoints++] = optarg;
			break;
		case 'H':
			if (set.nhosts == MAX_HOSTS)
				errx(MR_UNFIT, "more than %d hosts", MAX_HOSTS);
			set.host[set.nhosts++] = optarg;
			break;
		case 'S':
			if (set.nstores == MAX_STORES)
				errx(MR_UNFIT, "more than %d stores",
				    MAX_STORES);
			if (*optarg == '\0')
				errx(MR_UNFIT, "a store's name is empty");
			set.store[set.nstores++] = optarg;
			break;
		case 't':
			if (!number(optarg, 100, &n))
				return usage(stderr);
			set.tries = (int)n;
			break;
		case 'w':
			if (!number(optarg, 3600, &n))
				return usage(stderr);
			set.wait = (long)n;
			break;
		case 'o':
			file = optarg;
			break;
		case 'i':
			list = 1;
			break;
		case 'q':
			set.quiet = 1;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc != optind || (list && file != NULL))
		return usage(stderr);
	guard(!list && file == NULL);
	/* a reader that goes away or a limit is a lost write, not a death */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	endpoints(endpoint, nendpoints);
	return mr_finish(list ? many() : filter(file));
}
