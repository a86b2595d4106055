/* The plan: pairs of ids that are proven to differ, and its text. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ns-rename.h"

static const char header[] = "ns-rename plan 1";

int
plan_add(struct plan *p, const char *old, const char *new, struct mr_err *e)
{
	struct pair *v;

	if (!mr_id_ok(new))
		return mr_fail(e, "%s: its new id would be \"%.100s\", wanted "
		    "letters, digits, '.', '_', '-', at most %d in all", old,
		    new, MR_ID_MAX);
	if ((p->npairs & (p->npairs - 1)) == 0)
		p->pair = mr_realloc(p->pair, sizeof(*p->pair) *
		    (p->npairs > 0 ? p->npairs * 2 : 1));
	v = &p->pair[p->npairs++];
	memset(v, 0, sizeof(*v));
	memcpy(v->old, old, strlen(old) + 1);
	memcpy(v->new, new, strlen(new) + 1);
	return 0;
}

static int
by_old(const void *a, const void *b)
{
	return strcasecmp((*(struct pair *const *)a)->old,
	    (*(struct pair *const *)b)->old);
}

static int
by_new(const void *a, const void *b)
{
	return strcasecmp((*(struct pair *const *)a)->new,
	    (*(struct pair *const *)b)->new);
}

int
plan_prove(struct plan *p, struct mr_err *e)
{
	struct pair **v;
	size_t i;

	free(p->by_old);
	v = p->by_old = mr_malloc(p->npairs * sizeof(*v));
	for (i = 0; i < p->npairs; i++)
		v[i] = &p->pair[i];
	if (p->npairs == 0)
		return 0;
	qsort(v, p->npairs, sizeof(*v), by_new);
	for (i = 1; i < p->npairs; i++)
		if (strcasecmp(v[i - 1]->new, v[i]->new) == 0)
			return mr_fail(e, "%s: would be the id of both %s and "
			    "%s", v[i]->new, v[i - 1]->old, v[i]->old);
	qsort(v, p->npairs, sizeof(*v), by_old);
	for (i = 1; i < p->npairs; i++)
		if (strcasecmp(v[i - 1]->old, v[i]->old) == 0)
			return mr_fail(e, "%s and %s: wanted ids that differ "
			    "in more than case", v[i - 1]->old, v[i]->old);
	return 0;
}

struct pair *
plan_find(const struct plan *p, const char *old)
{
	struct pair key, *k = &key, **hit;

	if (p->npairs == 0 || strlen(old) > MR_ID_MAX)
		return NULL;
	memcpy(key.old, old, strlen(old) + 1);
	hit = bsearch(&k, p->by_old, p->npairs, sizeof(*hit), by_old);
	return hit != NULL && strcmp((*hit)->old, old) == 0 ? *hit : NULL;
}

/* ---- text ---- */

char *
plan_text(const struct plan *p)
{
	const struct pair *v;
	const struct file *f;
	char *text;
	size_t i, n;
	FILE *out;

	out = open_memstream(&text, &n);
	if (out == NULL)
		return mr_strdup("");
	fprintf(out, "%s%s%s\n", header, *p->version ? " " : "", p->version);
	for (i = 0; i < p->npairs; i++) {
		v = &p->pair[i];
		if (strcmp(v->old, v->new) == 0)
			fprintf(out, "keep %s\n", v->old);
		else
			fprintf(out, "%s %s -> %s\n", v->done ? "done" : "id",
			    v->old, v->new);
	}
	for (i = 0; i < p->nfiles; i++) {
		f = &p->file[i];
		if (f->act == LITTER)
			fprintf(out, "litter %s\n", f->from);
		else
			fprintf(out, "%s %s -> %s\n", f->act == DROP ?
			    "equal" : "file", f->from, f->to);
	}
	fputs("end\n", out);
	fclose(out);
	return text;
}

/* Takes "WORD A -> B" apart in place; B is NULL where there is no arrow. */
static void
words(char *line, char **a, char **b)
{
	char *arrow;

	*a = strchr(line, ' ');
	*b = NULL;
	if (*a == NULL)
		return;
	*(*a)++ = '\0';
	arrow = strstr(*a, " -> ");
	if (arrow != NULL && strcmp(line, "litter") != 0) {
		*arrow = '\0';
		*b = arrow + 4;
	}
}

/* one line on files: none may name what lies elsewhere */
static int
take_file(struct plan *p, enum act act, const char *from, const char *to)
{
	char id[MR_ID_MAX + 1];

	if (act == LITTER ? to != NULL || strncmp(from, "._", 2) != 0 ||
	    strchr(from, '/') != NULL : to == NULL ||
	    scan_id(from, id) == NULL || scan_id(to, id) == NULL)
		return -1;
	p->file = mr_realloc(p->file, (p->nfiles + 1) * sizeof(*p->file));
	p->file[p->nfiles++] = (struct file){ act, mr_strdup(from),
	    to != NULL ? mr_strdup(to) : NULL };
	return 0;
}

/* one line between the first and "end" */
static int
take_line(struct plan *p, char *line, struct mr_err *e)
{
	char *a, *b;

	words(line, &a, &b);
	if (a == NULL)
		return -1;
	if (strcmp(line, "file") == 0)
		return take_file(p, MOVE, a, b);
	if (strcmp(line, "equal") == 0)
		return take_file(p, DROP, a, b);
	if (strcmp(line, "litter") == 0)
		return take_file(p, LITTER, a, b);
	if (!mr_id_ok(a))
		return -1;
	if (strcmp(line, "keep") == 0 && b == NULL)
		return plan_add(p, a, a, e);
	if ((strcmp(line, "id") != 0 && strcmp(line, "done") != 0) ||
	    b == NULL || plan_add(p, a, b, e) == -1)
		return -1;
	p->pair[p->npairs - 1].done = *line == 'd';
	return 0;
}

int
plan_load(struct plan *p, const char *path, struct mr_err *e)
{
	char *text, *line, *next, *version;
	size_t n, row = 1, head = sizeof(header) - 1;
	int rc = 0, ended = 0;

	memset(p, 0, sizeof(*p));
	text = mr_slurp(path, MR_JSON_MAX, &n, e);
	if (text == NULL)
		return -1;
	for (line = text; rc == 0 && *line != '\0' && !ended; row++) {
		next = strchr(line, '\n');
		if (next == NULL)
			break;
		*next++ = '\0';
		version = line + head + (line[0] != '\0' &&
		    strlen(line) > head ? 1 : 0);
		if (row == 1 && strncmp(line, header, head) == 0 &&
		    strlen(version) < sizeof(p->version) &&
		    mr_version_ok(version))
			memcpy(p->version, version, strlen(version) + 1);
		else if (row > 1 && strcmp(line, "end") == 0)
			ended = 1;
		else if (row == 1 || take_line(p, line, e) == -1)
			rc = mr_fail(e, "%s: line %zu: not a line of a plan",
			    path, row);
		line = next;
	}
	if (rc == 0 && (!ended || (size_t)(line - text) != n))
		rc = mr_fail(e, "%s: not a whole plan: wanted \"end\" in its "
		    "last line", path);
	free(text);
	if (rc == 0)
		rc = plan_prove(p, e);
	if (rc == -1)
		plan_free(p);
	return rc;
}

char *
plan_idmap(const struct plan *p)
{
	const char *comma = "";
	char *text;
	size_t i, n;
	FILE *out;

	out = open_memstream(&text, &n);
	if (out == NULL)
		return mr_strdup("");
	fputs("{", out);
	for (i = 0; i < p->npairs; i++) {
		if (strcmp(p->pair[i].old, p->pair[i].new) == 0)
			continue;
		fprintf(out, "%s\n  \"%s\": \"%s\"", comma, p->pair[i].old,
		    p->pair[i].new);
		comma = ",";
	}
	fprintf(out, "%s}\n", *comma != '\0' ? "\n" : "");
	fclose(out);
	return text;
}

void
plan_free(struct plan *p)
{
	size_t i;

	for (i = 0; i < p->nfiles; i++) {
		free(p->file[i].from);
		free(p->file[i].to);
	}
	free(p->file);
	free(p->by_old);
	free(p->pair);
	memset(p, 0, sizeof(*p));
}
