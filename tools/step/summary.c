/* The summary at the end of a run, from its count file and the records. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mr.h"
#include "step.h"

/* one line of the count file */
struct line {
	const char	*id, *stage, *verdict;	/* ok, current or a status */
	size_t		 at;
};

static int
by_id(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int d;

	d = strcmp(x->id, y->id);
	if (d == 0)
		d = strcmp(x->stage, y->stage);
	if (d == 0)
		d = x->at < y->at ? -1 : 1;
	return d;
}

/* Cuts TEXT into lines; exits when one is not as count.c writes it. */
static struct line *
parse(const char *path, char *text, size_t *n)
{
	struct line *v = NULL;
	char *row, *rows, *word;

	*n = 0;
	for (row = strtok_r(text, "\n", &rows); row != NULL;
	    row = strtok_r(NULL, "\n", &rows)) {
		if ((*n & (*n - 1)) == 0)
			v = mr_realloc(v, sizeof(*v) * (*n > 0 ? *n * 2 : 1));
		v[*n].at = *n;
		v[*n].id = strtok_r(row, " ", &word);
		v[*n].stage = strtok_r(NULL, " ", &word);
		v[*n].verdict = strtok_r(NULL, " ", &word);
		if (v[*n].id == NULL || !mr_id_ok(v[*n].id) ||
		    v[*n].verdict == NULL)
			errx(MR_UNFIT, "%s: line %zu: wanted \"id stage "
			    "status seconds end\"", path, *n + 1);
		++*n;
	}
	return v;
}

/* Prints why a step failed; the status it counts as. */
static int
failure(const struct step *s, const struct line *l)
{
	struct mr_json j;
	struct mr_err e;
	const char *why;
	uint64_t status;
	char *path, *text;
	int have;

	if (mr_number(l->verdict, 255, &status) == -1)
		status = MR_UNFIT;
	path = mr_fmt("%s/%s_failure.json", s->results, l->id);
	have = mr_json_load(&j, path, &e) == 0;
	why = have && strcmp(mr_json_str(j, "stage", ""), l->stage) == 0 ?
	    mr_json_str(j, "error", "") : "no failure record";
	text = mr_fmt("%-16s  %-8s  status %llu  %s  (%s/%s.log)", l->id,
	    l->stage, (unsigned long long)status, why, s->logs, l->id);
	puts(mr_one_line(text));
	free(text);
	if (have)
		mr_json_free(j);
	free(path);
	return status == MR_UNFIT || status == MR_AGAIN ? (int)status : MR_NO;
}

/* Keeps the last line of each step of each model; their number. */
static size_t
latest(struct line *v, size_t n)
{
	size_t i, k;

	if (n > 0)
		qsort(v, n, sizeof(*v), by_id);
	for (i = k = 0; i < n; i++)
		if (i + 1 == n || strcmp(v[i].id, v[i + 1].id) != 0 ||
		    strcmp(v[i].stage, v[i + 1].stage) != 0)
			v[k++] = v[i];
	return k;
}

static int
failed(const struct line *l)
{
	return strcmp(l->verdict, "ok") != 0 &&
	    strcmp(l->verdict, "current") != 0;
}

/* Counts models by their worst step: done, current or failed. */
static void
tally(const struct line *v, size_t n, uint64_t *done, uint64_t *current,
    uint64_t *lost)
{
	int bad = 0, made = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		bad |= failed(&v[i]);
		made |= strcmp(v[i].verdict, "ok") == 0;
		if (i + 1 < n && strcmp(v[i].id, v[i + 1].id) == 0)
			continue;
		++*(bad ? lost : made ? done : current);
		bad = made = 0;
	}
}

/* Prints "N WHAT", after a comma unless it is the first. */
static void
item(uint64_t n, const char *what, int *first)
{
	if (n == 0)
		return;
	printf("%s%llu %s", *first ? "" : ", ", (unsigned long long)n, what);
	*first = 0;
}

int
summary(const struct step *s, uint64_t current)
{
	uint64_t done = 0, lost = 0, left;
	int first = 1, status = MR_OK;
	size_t i, n = 0, len;
	struct line *v = NULL;
	char *text = NULL;
	struct mr_err e;

	if (s->counts != NULL) {
		text = mr_slurp(s->counts, MR_JSON_MAX, &len, &e);
		if (text == NULL && errno != ENOENT)
			errx(MR_UNFIT, "%s", e.text);
	}
	if (text != NULL)
		v = parse(s->counts, text, &n);
	left = s->total > n ? s->total - n : 0;
	n = latest(v, n);
	tally(v, n, &done, &current, &lost);
	count_erase();
	item(done, "done", &first);
	item(current, "current", &first);
	item(lost, "failed", &first);
	item(left, left == 1 ? "step not tried" : "steps not tried", &first);
	if (done + lost + left == 0)
		printf("%snothing to do", first ? "" : ", ");
	putchar('\n');
	for (i = 0; i < n; i++)
		if (failed(&v[i]))
			status = mr_worse(status, failure(s, &v[i]));
	free(v);
	free(text);
	return status;
}
