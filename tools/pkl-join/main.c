/* Joins an artifact as a device does: whole, or from parts, and verified. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pkl-join.h"

enum { MARGIN = 16 << 20 };	/* bytes that are to stay free */

static int
usage(FILE *f)
{
	fputs("usage: pkl-join [-q] [-s sha256] [-t seconds] [-T tries] "
	    "[-z size] -o file base\n"
	    "       pkl-join -c [-q] [-s sha256] [-t seconds] [-T tries] "
	    "[-z size] base\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* the artifact as it arrives */
struct joined {
	struct mr_out		 out;		/* fd -1: only checked */
	struct mr_sha256	*hash;
	struct mr_progress	*progress;
	uint64_t		 n;
	char			 head[MR_POINTER_MAX];
	const char		*to;
};

static int
take(void *arg, const void *buf, size_t n, struct mr_err *e)
{
	struct joined *j = arg;
	size_t k;

	if (j->n < sizeof(j->head)) {
		k = sizeof(j->head) - (size_t)j->n;
		memcpy(j->head + j->n, buf, n < k ? n : k);
	}
	j->n += n;
	mr_sha256_add(j->hash, buf, n);
	if (j->out.fd != -1 && mr_write(j->out.fd, buf, n) == -1)
		return mr_fail(e, "%s: %s", j->to, strerror(errno));
	mr_progress_add(j->progress, n);
	return 0;
}

/* Why the bytes are not the artifact that was wanted, or 0. */
static int
wrong(const struct joined *j, const struct set *set, const char *base,
    const char *hex, const char *want, uint64_t size)
{
	struct mr_pointer p;
	struct mr_err e;

	if (j->n < MR_POINTER_MAX &&
	    mr_pointer_parse(j->head, (size_t)j->n, &p, &e) != 0)
		warnx("%s: is a Git LFS pointer, not an artifact", base);
	else if (set->hex[0] != '\0' && strcmp(hex, set->hex) != 0)
		warnx("%s: sha256 of %s is %s, its .sha256 says %s", base,
		    set->n == 0 ? "the whole file" : "the parts", hex,
		    set->hex);
	else if (want != NULL && strcmp(hex, want) != 0)
		warnx("%s: sha256 is %s, wanted %s", base, hex, want);
	else if (size != UINT64_MAX && j->n != size)
		warnx("%s: %llu bytes, wanted %llu", base,
		    (unsigned long long)j->n, (unsigned long long)size);
	else
		return 0;
	return 1;
}

/* room for SIZE bytes beside PATH? */
static int
room(const char *path, uint64_t size)
{
	uint64_t left;

	if (size == UINT64_MAX || mr_space(path, &left) == -1 ||
	    (left >= MARGIN && left - MARGIN >= size))
		return 1;
	warnx("%s: no space: %llu bytes are free, wanted %llu and %d more",
	    path, (unsigned long long)left, (unsigned long long)size, MARGIN);
	return 0;
}

/* Joins SET into TO (NULL: only checks it); a status. */
static int
join(const struct source *s, const struct set *set, const char *to,
    const char *want, uint64_t size, int quiet)
{
	struct joined j;
	struct mr_err e;
	char hex[MR_HEX];
	int status;

	memset(&j, 0, sizeof(j));
	j.out.fd = -1;
	j.to = to;
	if (to != NULL && !room(to, set->size))
		return MR_UNFIT;
	if (to != NULL && mr_out_open(&j.out, to, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	j.hash = mr_sha256_new();
	j.progress = mr_progress_new(s->base, set->size == UINT64_MAX ? 0 :
	    set->size, quiet);
	status = set_read(s, set, &(struct taker){ take, &j }, &e);
	mr_progress_end(j.progress);
	mr_sha256_end(j.hash, hex);
	if (status != MR_OK)
		warnx("%s", e.text);
	else if (wrong(&j, set, s->base, hex, want, size))
		status = MR_NO;
	if (to != NULL && status == MR_OK &&
	    mr_out_commit(&j.out, &e) == -1) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	if (to != NULL)
		mr_out_abort(&j.out);
	if (status == MR_OK && !quiet)
		printf("%s  %s\n", hex, to == NULL ? s->base : to);
	return status;
}

static uint64_t
number(int option, const char *text, uint64_t least, uint64_t most)
{
	uint64_t n;

	if (mr_number(text, most, &n) == -1 || n < least)
		errx(MR_UNFIT, "-%c %.40s: wanted a number from %llu to %llu",
		    option, text, (unsigned long long)least,
		    (unsigned long long)most);
	return n;
}

int
main(int argc, char *argv[])
{
	struct source s = { NULL, 0, 3, 60 };
	struct set set;
	struct mr_err e;
	const char *to = NULL, *want = NULL;
	uint64_t size = UINT64_MAX;
	int c, check = 0, quiet = 0, status;

	while ((c = getopt(argc, argv, "T:Vcho:qs:t:z:")) != -1)
		switch (c) {
		case 'T':
			s.tries = (unsigned)number(c, optarg, 1, 100);
			break;
		case 'c':
			check = 1;
			break;
		case 'o':
			to = optarg;
			break;
		case 'q':
			quiet = 1;
			break;
		case 's':
			want = optarg;
			break;
		case 't':
			s.wait = (long)number(c, optarg, 1, 3600);
			break;
		case 'z':
			size = number(c, optarg, 0, UINT64_MAX >> 1);
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc - optind != 1 || (to == NULL) != check)
		return usage(stderr);
	if (want != NULL && !mr_oid_ok(want))
		errx(MR_UNFIT, "-s %.80s: wanted 64 lower-case hex digits",
		    want);
	s.base = argv[optind];
	s.http = http_is(s.base, &e);
	if (s.http == -1)
		errx(MR_UNFIT, "%s: %s", s.base, e.text);
	status = set_find(&s, &set, &e);
	if (status != MR_OK) {
		warnx("%s", e.text);
	} else if (want != NULL && set.hex[0] != '\0' &&
	    strcmp(want, set.hex) != 0) {
		warnx("%s.sha256: says %s, wanted %s", s.base, set.hex, want);
		status = MR_NO;
	} else if (size != UINT64_MAX && set.size != UINT64_MAX &&
	    size != set.size) {
		warnx("%s: %llu bytes, wanted %llu", s.base,
		    (unsigned long long)set.size, (unsigned long long)size);
		status = MR_NO;
	} else {
		status = join(&s, &set, to, want, size, quiet);
	}
	return mr_finish(status);
}
