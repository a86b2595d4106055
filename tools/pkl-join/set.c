/* Which files make an artifact: the whole one, or parts and their digest. A
 * device counts parts until the first that is missing, so a part that is too
 * many, or one that lacks, gives it wrong bytes: here it is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkl-join.h"

enum { SUM_MAX = 512 };	/* bytes of a .sha256 file */

static int
size_of(const struct source *s, const char *suffix, uint64_t *size,
    struct mr_err *e)
{
	return s->http ? http_size(s, suffix, size, e) :
	    disk_size(s, suffix, size, e);
}

static int
read_of(const struct source *s, const char *suffix, uint64_t size,
    const struct taker *t, struct mr_err *e)
{
	return s->http ? http_read(s, suffix, size, t, e) :
	    disk_read(s, suffix, size, t, e);
}

static const char *
part_suffix(char suffix[8], size_t i)
{
	snprintf(suffix, 8, ".p%02zu", i);
	return suffix;
}

/* ---- the digest ---- */

struct line {
	char	text[SUM_MAX];
	size_t	n;
};

/* what is too long is wrong without its end, too */
static int
take_line(void *arg, const void *buf, size_t n, struct mr_err *e)
{
	struct line *l = arg;

	(void)e;
	if (n > sizeof(l->text) - l->n)
		n = sizeof(l->text) - l->n;
	memcpy(l->text + l->n, buf, n);
	l->n += n;
	return 0;
}

/* Reads BASE.sha256, if there is one. */
static int
find_digest(const struct source *s, struct set *set, struct mr_err *e)
{
	struct line l = { "", 0 };
	struct taker t = { take_line, &l };
	struct mr_err why;
	const char *name;
	uint64_t size;
	int status;

	set->hex[0] = '\0';
	status = size_of(s, ".sha256", &size, e);
	if (status != MR_OK)
		return status == MR_NO ? MR_OK : status;
	status = read_of(s, ".sha256", size, &t, e);
	if (status != MR_OK)
		return status;
	name = strrchr(s->base, '/');
	name = name == NULL ? s->base : name + 1;
	if (mr_sha256_line(l.text, l.n, name, set->hex, &why) == 0)
		return MR_OK;
	mr_fail(e, "%s.sha256: %s", s->base, why.text);
	return MR_NO;
}

/* ---- the parts ---- */

/* the one after a missing part is there: which is it that lacks? */
static int
check_gap(const struct source *s, const struct set *set, struct mr_err *e)
{
	char lacks[8], next[8];
	struct mr_err unused;
	uint64_t size;
	int status;

	if (set->n + 1 >= PARTS_MAX)
		return MR_OK;
	part_suffix(lacks, set->n);
	status = size_of(s, part_suffix(next, set->n + 1), &size, &unused);
	if (status == MR_NO)
		return MR_OK;
	if (status != MR_OK)
		*e = unused;
	else
		mr_fail(e, "%s%s: missing, yet %s is there", s->base, lacks,
		    next);
	return status == MR_OK ? MR_NO : status;
}

/* all parts are of one size but the last, which is not larger */
static int
check_sizes(const struct source *s, const struct set *set, struct mr_err *e)
{
	char a[8], b[8];
	size_t i;

	for (i = 0; i < set->n; i++) {
		part_suffix(a, i);
		if (set->part[i] == 0)
			mr_fail(e, "%s%s: is empty", s->base, a);
		else if (i + 1 < set->n && set->part[i] < set->part[0])
			mr_fail(e, "%s%s: %llu bytes, less than .p00: cut "
			    "off, or %s is of an older set", s->base, a,
			    (unsigned long long)set->part[i],
			    part_suffix(b, i + 1));
		else if (set->part[i] > set->part[0])
			mr_fail(e, "%s%s: %llu bytes, more than .p00: of "
			    "another set", s->base, a,
			    (unsigned long long)set->part[i]);
		else
			continue;
		return MR_NO;
	}
	return MR_OK;
}

static int
find_parts(const struct source *s, struct set *set, struct mr_err *e)
{
	char suffix[8];
	int status = MR_OK, told = 1;

	set->size = 0;
	for (set->n = 0; set->n < PARTS_MAX; set->n++) {
		status = size_of(s, part_suffix(suffix, set->n),
		    &set->part[set->n], e);
		if (status != MR_OK)
			break;
		if (set->part[set->n] == UINT64_MAX)
			told = 0;
		set->size += set->part[set->n];
	}
	if (status != MR_OK && status != MR_NO)
		return status;
	status = check_gap(s, set, e);
	if (status != MR_OK)
		return status;
	if (set->n == 0) {
		mr_fail(e, "%s.p00: missing, yet .sha256 is there", s->base);
		return MR_NO;
	}
	if (told)
		return check_sizes(s, set, e);
	set->size = UINT64_MAX;
	return MR_OK;
}

int
set_find(const struct source *s, struct set *set, struct mr_err *e)
{
	int status, digest;

	set->n = 0;
	status = size_of(s, "", &set->size, e);
	if (status != MR_OK && status != MR_NO)
		return status;
	digest = find_digest(s, set, e);
	if (digest != MR_OK || status == MR_OK)
		return digest;
	if (set->hex[0] != '\0')
		return find_parts(s, set, e);
	mr_fail(e, "%s: missing, and so is .sha256", s->base);
	return MR_NO;
}

int
set_read(const struct source *s, const struct set *set,
    const struct taker *t, struct mr_err *e)
{
	char suffix[8];
	size_t i;
	int status;

	if (set->n == 0)
		return read_of(s, "", set->size, t, e);
	for (i = 0; i < set->n; i++) {
		status = read_of(s, part_suffix(suffix, i), set->part[i], t,
		    e);
		if (status != MR_OK)
			return status;
	}
	return MR_OK;
}
