/* Gives every id of a manifest its name in a release, files too. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ns-rename.h"

/* what the command line says */
struct opts {
	const char	*suffix, *version, *idmap, *table, *plan;
	const char	*dir, *out;
	char		**only;		/* ids, none: all */
	int		 dry;
};

static int
usage(FILE *f)
{
	fputs("usage: ns-rename [-nhV] -s SUFFIX | -t TABLE | -p PLAN [-v "
	    "VERSION] [-k IDMAP]\n"
	    "                 [-C DIR [-o OUT]] [--only ID ...] <manifest "
	    ">manifest\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

static int
named(char *const only[], const char *id)
{
	if (*only == NULL)
		return 1;
	for (; *only != NULL; only++)
		if (strcmp(*only, id) == 0)
			return 1;
	return 0;
}

/* every id gets the suffix, or the name that the table has for it */
static int
suffix_plan(const struct opts *o, const struct table *t,
    const struct mr_manifest *m, struct plan *p, struct mr_err *e)
{
	const char *old, *new;
	char *made;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < m->n; i++) {
		old = m->entry[i].id;
		made = mr_fmt("%s%s", old, o->suffix);
		new = mr_json_str(t->rename, old, made);
		rc = plan_add(p, old, named(o->only, old) ? new : old, e);
		free(made);
	}
	return rc;
}

/* Has the manifest every id of the command line? */
static int
check_only(const struct opts *o, const struct plan *p, struct mr_err *e)
{
	size_t i;

	for (i = 0; o->only[i] != NULL; i++)
		if (plan_find(p, o->only[i]) == NULL)
			return mr_fail(e, "%s: --only names it, and the "
			    "manifest does not", o->only[i]);
	return 0;
}

/* Has a plan that was read every id of the manifest? */
static int
check_plan(const struct opts *o, const struct plan *p,
    const struct mr_manifest *m, struct mr_err *e)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (plan_find(p, m->entry[i].id) == NULL)
			return mr_fail(e, "%s: says nothing of %s, which the "
			    "manifest has: make a new plan", o->plan,
			    m->entry[i].id);
	return 0;
}

/* the ids: from a plan that was read, or from suffix and table */
static int
make_ids(const struct opts *o, const struct table *t, struct mr_manifest *m,
    struct plan *p, struct mr_err *e)
{
	size_t i;
	int rc;

	if (o->plan != NULL) {
		rc = plan_load(p, o->plan, e);
		if (rc == -1 || check_plan(o, p, m, e) == -1)
			return -1;
		for (i = 0; i < p->npairs; i++)
			p->pair[i].done = 0;
		return o->dir == NULL || *p->version != '\0' ? 0 :
		    mr_fail(e, "%s: names no version: make a plan with -v",
		    o->plan);
	}
	if (o->version != NULL)
		snprintf(p->version, sizeof(p->version), "%s", o->version);
	rc = o->suffix != NULL ? suffix_plan(o, t, m, p, e) :
	    table_plan(t, p, m, o->only, o->dir, e);
	if (rc == 0)
		rc = plan_prove(p, e);
	return rc == 0 ? check_only(o, p, e) : rc;
}

/* A run that was killed here goes on, if it was to do the same. */
static int
resume(struct plan *p, const char *path, struct mr_err *e)
{
	const struct pair *v, *w;
	struct plan begun;
	size_t i;
	int rc = 0;

	if (plan_load(&begun, path, e) == -1)
		return -1;
	for (i = 0; rc == 0 && (i < begun.npairs || i < p->npairs); i++) {
		v = i < p->npairs ? &p->pair[i] : NULL;
		w = i < begun.npairs ? &begun.pair[i] : NULL;
		if (v == NULL || w == NULL || strcmp(v->old, w->old) != 0 ||
		    strcmp(v->new, w->new) != 0)
			rc = mr_fail(e, "%s: another renaming was begun here: "
			    "end it first, with -p %s", path, path);
	}
	if (rc == 0 && strcmp(p->version, begun.version) != 0)
		rc = mr_fail(e, "%s: was begun for version \"%s\": -v %s",
		    path, begun.version, begun.version);
	plan_free(rc == 0 ? p : &begun);
	if (rc == 0)
		*p = begun;
	return rc;
}

/* the files: those of a run that was begun, or what the folder has now */
static int
make_files(const struct opts *o, struct plan *p, struct mr_err *e)
{
	char *begun, *is, *was;
	size_t len;
	int rc;

	begun = o->out == NULL ? inplace_begun(o->dir) : NULL;
	if (begun != NULL) {
		rc = resume(p, begun, e);
		free(begun);
		return rc;
	}
	while (p->nfiles > 0) {		/* of a plan that was read */
		free(p->file[--p->nfiles].from);
		free(p->file[p->nfiles].to);
	}
	if ((o->out == NULL && inplace_done(p, o->dir, e) == -1) ||
	    scan(p, o->dir, o->out != NULL, e) == -1)
		return -1;
	if (o->plan == NULL)
		return 0;
	was = mr_slurp(o->plan, MR_JSON_MAX, &len, e);
	is = plan_text(p);
	rc = was == NULL ? -1 : strcmp(is, was) == 0 ? 0 :
	    mr_fail(e, "%s: is not what would be done in %s now: make a new "
	    "plan", o->plan, o->dir);
	free(was);
	free(is);
	return rc;
}

/* the manifest with new ids; the caller frees */
static char *
rename_all(const struct opts *o, const struct table *t, const struct plan *p,
    struct mr_manifest *m)
{
	const struct pair *v;
	struct mr_entry *w;
	char *text;
	size_t i, n;

	for (i = 0; i < m->n; i++) {
		w = &m->entry[i];
		v = plan_find(p, w->id);
		if (v == NULL || strcmp(v->old, v->new) == 0)
			continue;
		memcpy(w->id, v->new, sizeof(w->id));
		mr_entry_del(w, "artifact_url");
	}
	table_add(t, p, m, o->dir);
	text = mr_manifest_text(m, &n);
	text = mr_realloc(text, n + 1);
	text[n] = '\0';
	return text;
}

/* where the id map goes: DIR and NAME of a path */
static int
put_idmap(const char *path, const struct plan *p, struct mr_err *e)
{
	char *text, *dir;
	const char *slash;
	int rc;

	slash = strrchr(path, '/');
	dir = slash == NULL ? mr_strdup(".") :
	    mr_fmt("%.*s", (int)(slash - path), slash == path ? "/" : path);
	text = plan_idmap(p);
	rc = text_put(*dir ? dir : "/", slash != NULL ? slash + 1 : path,
	    text, e);
	free(text);
	free(dir);
	return rc;
}

/* Does what the plan says. */
static int
apply(const struct opts *o, const struct table *t, struct plan *p,
    struct mr_manifest *m, struct mr_err *e)
{
	char *text;
	int rc = 0;

	if (o->dry) {
		text = plan_text(p);
		fputs(text, stdout);
		free(text);
		return 0;
	}
	text = rename_all(o, t, p, m);
	if (o->out != NULL)
		rc = into(p, o->dir, o->out, text, e);
	else if (o->dir != NULL)
		rc = inplace(p, o->dir, text, e);
	else
		fputs(text, stdout);
	free(text);
	if (rc == 0 && o->idmap != NULL)
		rc = put_idmap(o->idmap, p, e);
	return rc;
}

/* A status: what is refused is refused before anything is changed. */
static int
run(const struct opts *o)
{
	struct plan p = { .version = "" };
	struct mr_manifest m;
	struct table t;
	struct mr_err e;
	int rc, status = MR_NO;

	if (o->dir != NULL && access(o->dir, R_OK | X_OK) == -1)
		err(MR_UNFIT, "%s", o->dir);
	if (table_load(&t, o->table, &e) == -1)
		errx(MR_NO, "%s", e.text);
	rc = mr_manifest_load(&m, NULL, &e);
	if (rc == 0) {
		rc = make_ids(o, &t, &m, &p, &e);
		if (rc == 0 && o->dir != NULL)
			rc = make_files(o, &p, &e);
		if (rc == 0) {
			status = MR_UNFIT;
			rc = apply(o, &t, &p, &m, &e);
		}
		mr_manifest_free(&m);
	}
	plan_free(&p);
	table_free(&t);
	if (rc == -1)
		warnx("%s", e.text);
	return rc == 0 ? MR_OK : status;
}

/* Takes "--only ID ..." off the end of the command line. */
static char **
take_only(int *argc, char *argv[])
{
	int i;

	for (i = 1; i < *argc; i++)
		if (strcmp(argv[i], "--only") == 0)
			break;
	if (i == *argc)
		return argv + *argc;
	if (i + 1 == *argc)
		errx(MR_UNFIT, "--only: wanted ids after it");
	*argc = i;
	return argv + i + 1;
}

int
main(int argc, char *argv[])
{
	static struct opts o;
	int c;

	o.only = take_only(&argc, argv);
	while ((c = getopt(argc, argv, "C:k:no:p:s:t:v:hV")) != -1)
		switch (c) {
		case 'C':
			o.dir = optarg;
			break;
		case 'k':
			o.idmap = optarg;
			break;
		case 'n':
			o.dry = 1;
			break;
		case 'o':
			o.out = optarg;
			break;
		case 'p':
			o.plan = optarg;
			break;
		case 's':
			o.suffix = optarg;
			break;
		case 't':
			o.table = optarg;
			break;
		case 'v':
			o.version = optarg;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc != optind || (o.out != NULL && o.dir == NULL) ||
	    (o.suffix == NULL && o.table == NULL && o.plan == NULL) ||
	    (o.plan != NULL && o.suffix != NULL) ||
	    (o.dir != NULL && o.version == NULL && o.plan == NULL))
		return usage(stderr);
	if (o.suffix != NULL && *o.suffix == '\0')
		errx(MR_UNFIT, "-s: wanted a suffix");
	if (o.version != NULL && (*o.version == '\0' ||
	    !mr_version_ok(o.version)))
		errx(MR_UNFIT, "-v %s: wanted v and 1 to 4 digits", o.version);
	return mr_finish(run(&o));
}
