/* The plan carried out in its own folder, so that it can be killed at any
 * moment and run again. The journal is the plan:
 *	.ns-rename.1	every file goes from its name to .ns-rename.NEWNAME
 *	.ns-rename.2	every .ns-rename.NEWNAME goes to NEWNAME
 *	.ns-rename.done	the ids that were renamed here
 * No file gets its new name before the last has left its old one: so a chain
 * like a -> b, b -> c cannot go wrong, nor be taken twice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ns-rename.h"

#define BEGUN ".ns-rename.1"
#define MOVED ".ns-rename.2"
#define ENDED ".ns-rename.done"

/* DIR/NAME, or DIR/.ns-rename.NAME; the caller frees */
static char *
at(const char *dir, const char *name)
{
	return mr_fmt("%s/%s", dir, name);
}

static char *
aside(const char *dir, const char *name)
{
	return mr_fmt("%s/.ns-rename.%s", dir, name);
}

static int
there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Renames FROM, or says why not; frees both names. */
static int
shift(char *from, char *to, struct mr_err *e)
{
	int rc = 0;

	if (rename(from, to) == -1)
		rc = mr_fail(e, "%s to %s: %s", from, to, strerror(errno));
	free(from);
	free(to);
	return rc;
}

/* Removes what need not be there any more; frees the name. */
static int
gone(char *path, struct mr_err *e)
{
	int rc = 0;

	if (unlink(path) == -1 && errno != ENOENT)
		rc = mr_fail(e, "%s: remove: %s", path, strerror(errno));
	free(path);
	return rc;
}

/* all names of the folder are on the disk */
static int
settle(const char *dir, struct mr_err *e)
{
	char *inside = mr_fmt("%s/.", dir);
	int rc = 0;

	if (mr_sync_dir(inside) == -1)
		rc = mr_fail(e, "%s: fsync: %s", dir, strerror(errno));
	free(inside);
	return rc;
}

/* one file from its old name to the one aside */
static int
leave(const struct file *f, const char *dir, struct mr_err *e)
{
	char *from, *tmp, *text, *name;
	int begun, moved, rc = 0;

	if (f->act != MOVE)
		return gone(at(dir, f->from), e);
	from = at(dir, f->from);
	tmp = aside(dir, f->to);
	begun = there(from);
	moved = there(tmp);
	if (!begun && !moved) {
		rc = mr_fail(e, "%s: is gone, and so is %s", from, tmp);
	} else if (scan_marker(f->from)) {
		if (!moved) {
			name = mr_fmt(".ns-rename.%s", f->to);
			text = text_marker(dir, f->from, f->to, e);
			rc = text == NULL ? -1 : text_put(dir, name, text, e);
			free(text);
			free(name);
		}
		if (rc == 0)
			rc = gone(mr_strdup(from), e);
	} else if (!moved) {
		rc = shift(mr_strdup(from), mr_strdup(tmp), e);
	}
	free(from);
	free(tmp);
	return rc;
}

/* what is not a file of a set, and where it goes */
static int
put_aside(const char *dir, const char *name, const char *text,
    struct mr_err *e)
{
	char *tmp, *inside;
	int rc = 0;

	tmp = aside(dir, name);
	inside = mr_fmt(".ns-rename.%s", name);
	if (!there(tmp))
		rc = text_put(dir, inside, text, e);
	free(inside);
	free(tmp);
	return rc;
}

/* from a name aside to the final one, where that has not been done */
static int
arrive(const char *dir, const char *name, int must, struct mr_err *e)
{
	char *tmp, *to;
	int rc = 0;

	tmp = aside(dir, name);
	to = at(dir, name);
	if (there(tmp))
		rc = shift(mr_strdup(tmp), mr_strdup(to), e);
	else if (must && !there(to))
		rc = mr_fail(e, "%s: is gone, and so is %s", to, tmp);
	free(tmp);
	free(to);
	return rc;
}

/* phase 1: no final name is written */
static int
phase1(const struct plan *p, const char *dir, const char *manifest,
    const char *name, struct mr_err *e)
{
	char *text;
	size_t i;
	int rc = 0;

	text = text_multipart(dir, p, 0, e);
	if (text == NULL && e->text[0] != '\0')
		return -1;
	if (text != NULL)
		rc = put_aside(dir, "multipart.json", text, e);
	free(text);
	if (rc == 0)
		rc = put_aside(dir, name, manifest, e);
	for (i = 0; rc == 0 && i < p->nfiles; i++)
		rc = leave(&p->file[i], dir, e);
	if (rc == 0)
		rc = settle(dir, e);
	if (rc == 0)
		rc = shift(at(dir, BEGUN), at(dir, MOVED), e);
	return rc == 0 ? settle(dir, e) : rc;
}

/* phase 2: the marker of a set comes last, the manifest after all sets */
static int
phase2(const struct plan *p, const char *dir, const char *name,
    struct mr_err *e)
{
	size_t i;
	int rc = 0;

	for (i = p->nfiles; rc == 0 && i-- > 0; )
		if (p->file[i].act != LITTER)
			rc = arrive(dir, p->file[i].to, 1, e);
	if (rc == 0)
		rc = arrive(dir, "multipart.json", 0, e);
	if (rc == 0)
		rc = arrive(dir, name, 1, e);
	return rc == 0 ? settle(dir, e) : rc;
}

/* Adds the ids of this plan to those that were renamed here. */
static int
end(struct plan *p, const char *dir, struct mr_err *e)
{
	struct plan was = { .version = "" }, is = { .version = "" };
	const struct pair *v;
	char *path, *text;
	size_t i;
	int rc = 0;

	path = at(dir, ENDED);
	if (there(path))
		rc = plan_load(&was, path, e);
	free(path);
	for (i = 0; rc == 0 && i < was.npairs; i++) {
		v = plan_find(p, was.pair[i].old);
		if (v == NULL || v->done || strcmp(v->old, v->new) == 0)
			rc = plan_add(&is, was.pair[i].old, was.pair[i].new,
			    e);
	}
	for (i = 0; rc == 0 && i < p->npairs; i++) {
		v = &p->pair[i];
		if (strcmp(v->old, v->new) != 0 && !v->done)
			rc = plan_add(&is, v->old, v->new, e);
	}
	for (i = 0; i < is.npairs; i++)
		is.pair[i].done = 1;
	if (rc == 0) {
		text = plan_text(&is);
		rc = text_put(dir, ENDED, text, e);
		free(text);
	}
	plan_free(&was);
	plan_free(&is);
	return rc == 0 ? gone(at(dir, MOVED), e) : rc;
}

char *
inplace_begun(const char *dir)
{
	static const char *const names[] = { BEGUN, MOVED };
	char *path;
	size_t i;

	for (i = 0; i < 2; i++) {
		path = at(dir, names[i]);
		if (there(path))
			return path;
		free(path);
	}
	return NULL;
}

int
inplace_done(struct plan *p, const char *dir, struct mr_err *e)
{
	struct plan all;
	struct pair *v, *w;
	char *path;
	size_t i;

	path = at(dir, ENDED);
	if (!there(path)) {
		free(path);
		return 0;
	}
	if (plan_load(&all, path, e) == -1) {
		free(path);
		return -1;
	}
	for (i = 0; i < all.npairs; i++) {
		v = plan_find(p, all.pair[i].old);
		w = &all.pair[i];
		if (v != NULL && strcmp(v->new, v->old) != 0 &&
		    strcmp(v->new, w->new) == 0)
			v->done = 1;
	}
	plan_free(&all);
	free(path);
	return 0;
}

int
inplace(struct plan *p, const char *dir, const char *manifest,
    struct mr_err *e)
{
	char *begun, *text, *name, *moved;
	int rc = 0, resumed;

	begun = inplace_begun(dir);
	if (begun == NULL) {
		text = plan_text(p);
		rc = text_put(dir, BEGUN, text, e);
		free(text);
	}
	free(begun);
	name = mr_fmt("model_names_%s.json", p->version);
	moved = at(dir, MOVED);
	resumed = there(moved);
	free(moved);
	if (rc == 0 && !resumed)
		rc = phase1(p, dir, manifest, name, e);
	if (rc == 0)
		rc = phase2(p, dir, name, e);
	free(name);
	return rc == 0 ? end(p, dir, e) : rc;
}
