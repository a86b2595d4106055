/* Which files of a folder a plan concerns, and what is in their way. */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ns-rename.h"

static const char suffix[] = "_driving_tinygrad.pkl";
static const char marker[] = ".sha256";

/* the names in a folder, sorted without regard to case */
struct names {
	char	**v;
	size_t	  n;
};

int
scan_marker(const char *name)
{
	size_t n = strlen(name), m = sizeof(marker) - 1;

	return n > m && strcmp(name + n - m, marker) == 0;
}

const char *
scan_id(const char *name, char id[MR_ID_MAX + 1])
{
	const char *rest, *end;
	size_t n;

	n = strlen(name);
	end = name + n;
	if (scan_marker(name))
		end -= sizeof(marker) - 1;
	else if (n > 4 && end[-4] == '.' && end[-3] == 'p' &&
	    end[-2] >= '0' && end[-2] <= '9' && end[-1] >= '0' &&
	    end[-1] <= '9')
		end -= 4;
	if ((size_t)(end - name) <= sizeof(suffix) - 1)
		return NULL;
	rest = end - (sizeof(suffix) - 1);
	n = (size_t)(rest - name);
	if (n > MR_ID_MAX || memcmp(rest, suffix, sizeof(suffix) - 1) != 0)
		return NULL;
	memcpy(id, name, n);
	id[n] = '\0';
	return mr_id_ok(id) ? rest : NULL;
}

static int
by_name(const void *a, const void *b)
{
	return strcasecmp(*(char *const *)a, *(char *const *)b);
}

static int
list(struct names *l, const char *dir, struct mr_err *e)
{
	struct dirent *d;
	DIR *f;

	l->v = NULL;
	l->n = 0;
	f = opendir(dir);
	if (f == NULL)
		return mr_fail(e, "%s: %s", dir, strerror(errno));
	while ((d = readdir(f)) != NULL) {
		if ((l->n & (l->n - 1)) == 0)
			l->v = mr_realloc(l->v, sizeof(*l->v) *
			    (l->n > 0 ? l->n * 2 : 1));
		l->v[l->n++] = mr_strdup(d->d_name);
	}
	closedir(f);
	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), by_name);
	return 0;
}

static void
forget(struct names *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

static const char *
find(const struct names *l, const char *name)
{
	char **hit;

	hit = l->n > 0 ? bsearch(&name, l->v, l->n, sizeof(*l->v), by_name) :
	    NULL;
	return hit != NULL ? *hit : NULL;
}

/* does this pair take its files elsewhere? */
static int
moves(const struct pair *v)
{
	return v != NULL && !v->done && strcmp(v->old, v->new) != 0;
}

/* Are two files the same bytes? -1 (said) if one cannot be read. */
static int
same_bytes(const char *dir, const char *a, const char *b, struct mr_err *e)
{
	char x[MR_HEX], y[MR_HEX], *path;
	uint64_t size;
	int rc;

	path = mr_fmt("%s/%s", dir, a);
	rc = mr_sha256_file(path, x, &size, e);
	free(path);
	path = mr_fmt("%s/%s", dir, b);
	if (rc == 0 && mr_sha256_file(path, y, &size, e) == 0)
		rc = strcmp(x, y) == 0;
	else
		rc = -1;
	free(path);
	return rc;
}

/* Is DIR/FROM, once it is renamed, the same as DIR/THERE? */
static int
same(const char *dir, const char *from, const char *to, const char *there,
    struct mr_err *e)
{
	char *a, *b;
	int rc = -1;

	if (!scan_marker(from))
		return same_bytes(dir, from, there, e);
	a = text_marker(dir, from, to, e);
	b = a != NULL ? text_marker(dir, there, to, e) : NULL;
	if (b != NULL)
		rc = strcmp(a, b) == 0;
	free(a);
	free(b);
	return rc;
}

/* a regular file, so that a rename moves what it says */
static int
regular(const char *dir, const char *name, struct mr_err *e)
{
	struct stat st;
	char *path;
	int rc = 0;

	path = mr_fmt("%s/%s", dir, name);
	if (lstat(path, &st) == -1)
		rc = mr_fail(e, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = mr_fail(e, "%s: not a regular file", path);
	free(path);
	return rc;
}

/* Is it a .sha256 that does not say what such a file says? */
static int
bad_marker(const char *dir, const char *name, const char *to,
    struct mr_err *e)
{
	char *text;

	if (!scan_marker(name))
		return 0;
	text = text_marker(dir, name, to, e);
	free(text);
	return text == NULL;
}

/* multipart.json must be readable, and there if there are parts that go to
 * another folder */
static int
check_multipart(const struct plan *p, const char *dir, int into,
    struct mr_err *e)
{
	char *text;
	size_t i, n;

	text = text_multipart(dir, p, into, e);
	if (text == NULL && e->text[0] != '\0')
		return -1;
	for (i = 0; into && text == NULL && i < p->nfiles; i++) {
		n = strlen(p->file[i].from);
		if (strcmp(p->file[i].from + n - 4, ".p00") == 0)
			return mr_fail(e, "%s/multipart.json: missing, though "
			    "%s is there", dir, p->file[i].from);
	}
	free(text);
	return 0;
}

/* adds one line to the plan, FROM below DIR */
static void
add(struct plan *p, enum act act, const char *from, char *to)
{
	if ((p->nfiles & (p->nfiles - 1)) == 0)
		p->file = mr_realloc(p->file, sizeof(*p->file) *
		    (p->nfiles > 0 ? p->nfiles * 2 : 1));
	p->file[p->nfiles++] = (struct file){ act, mr_strdup(from), to };
}

/* Is ID a new name of the plan? */
static int
has_new(const struct plan *p, const char *id)
{
	size_t i;

	for (i = 0; i < p->npairs; i++)
		if (strcmp(p->pair[i].new, id) == 0)
			return 1;
	return 0;
}

/* one file of an upload set: where it goes and what is there */
static int
take(struct plan *p, const char *dir, int into, const struct names *l,
    const char *name, struct mr_err *e)
{
	char id[MR_ID_MAX + 1], *to;
	const char *rest, *there = NULL;
	struct pair *v;
	int equal;

	rest = scan_id(name, id);
	v = rest != NULL ? plan_find(p, id) : NULL;
	if (v != NULL && v->done && !has_new(p, id))
		return mr_fail(e, "%s/%s: was renamed before, and is there "
		    "again: remove it, or %s/.ns-rename.done", dir, name, dir);
	if (v == NULL || (!into && !moves(v)))
		return 0;
	to = mr_fmt("%s%s", v->new, rest);
	if (regular(dir, name, e) == -1 || bad_marker(dir, name, to, e)) {
		free(to);
		return -1;
	}
	v->nfiles++;
	if (!into)
		there = find(l, to);
	if (there != NULL && scan_id(there, id) != NULL &&
	    moves(plan_find(p, id)))
		there = NULL;	/* it makes room first */
	if (there == NULL) {
		add(p, MOVE, name, to);
		return 0;
	}
	equal = same(dir, name, to, there, e);
	if (equal == 0)
		mr_fail(e, "%s/%s: %s would take its place, and differs: "
		    "remove one", dir, there, name);
	if (equal != 1) {
		free(to);
		return -1;
	}
	add(p, DROP, name, to);
	return 0;
}

/* A file that stays under a new id must have its like among those that come:
 * a set is whole or parts, never some of each. */
static int
in_the_way(const struct plan *p, const char *dir, const struct names *l,
    const char *name, struct mr_err *e)
{
	char id[MR_ID_MAX + 1], *from;
	const char *rest;
	size_t i;

	rest = scan_id(name, id);
	if (rest == NULL || moves(plan_find(p, id)))
		return 0;
	for (i = 0; i < p->npairs; i++)
		if (moves(&p->pair[i]) && p->pair[i].nfiles > 0 &&
		    strcasecmp(p->pair[i].new, id) == 0)
			break;
	if (i == p->npairs)
		return 0;
	from = mr_fmt("%s%s", p->pair[i].old, rest);
	i = find(l, from) != NULL;
	free(from);
	return i ? 0 : mr_fail(e, "%s/%s: is of the set that would come "
	    "there, and has no like in it: remove it", dir, name);
}

/* the marker of a set first, else by name: so a kill leaves no half set that
 * looks whole */
static int
by_order(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	int m;

	if ((x->act == LITTER) != (y->act == LITTER))
		return x->act == LITTER ? 1 : -1;
	m = scan_marker(y->from) - scan_marker(x->from);
	return m != 0 ? m : strcmp(x->from, y->from);
}

/* has a name that fits into a line of the plan */
static int
plain(const char *name)
{
	return mr_text_ok(name, strlen(name), 0);
}

int
scan(struct plan *p, const char *dir, int into, struct mr_err *e)
{
	struct names l;
	size_t i;
	int rc;

	rc = list(&l, dir, e);
	for (i = 0; rc == 0 && i < l.n; i++)
		if (!into && strncmp(l.v[i], "._", 2) == 0 && plain(l.v[i]))
			add(p, LITTER, l.v[i], NULL);
		else
			rc = take(p, dir, into, &l, l.v[i], e);
	for (i = 0; rc == 0 && !into && i < l.n; i++)
		rc = in_the_way(p, dir, &l, l.v[i], e);
	if (p->nfiles > 0)
		qsort(p->file, p->nfiles, sizeof(*p->file), by_order);
	forget(&l);
	return rc == 0 ? check_multipart(p, dir, into, e) : rc;
}
