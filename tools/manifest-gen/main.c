/* Base manifest, source maps and records -> the manifest of what was built. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest-gen.h"

enum { FILES_MAX = 60 };

/* what the command line says */
struct opts {
	char		*maps[FILES_MAX + 1], *bases[FILES_MAX + 1];
	size_t		 nmaps, nbases;
	const char	*results;
	const char	*old;		/* -U: the manifest to update */
	char		**ids;		/* the entries an update concerns */
	int		 unbuilt;	/* -a: keep entries without artifact */
	int		 digests;	/* -d: write size, sha256, format */
	int		 multipart;	/* -M: multipart.json instead */
	int		 quiet;
};

/* What the source maps say of a model. */
struct source {
	char	id[MR_ID_MAX + 1];	/* comes first: bsearch by id */
	signed char gpu;	/* uses_external_gpu, -1: it is not said */
};
struct sources {
	struct source	*v;	/* sorted by id */
	size_t		 n;
};

static int
usage(FILE *f)
{
	fputs("usage: manifest-gen [-adMqhV] [-o FILE] -b BASE ... [-m MAP] "
	    "...\n"
	    "                    -r RESULTS [-U OLD ID ...]\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

static int
by_source(const void *a, const void *b)
{
	return strcmp(((const struct source *)a)->id,
	    ((const struct source *)b)->id);
}

/* Reads the maps; what they hold besides is not kept in memory. */
static int
load_sources(struct sources *s, char *const maps[], struct mr_err *e)
{
	static char *none[] = { NULL };
	struct mr_catalog c;
	const struct mr_model *m;
	size_t i;

	if (mr_catalog_load(&c, maps, none, 0, e) == -1)
		return -1;
	s->n = c.n;
	s->v = mr_malloc(c.n * sizeof(*s->v));
	for (i = 0; i < c.n; i++) {
		m = &c.models[i];
		memcpy(s->v[i].id, m->id, strlen(m->id) + 1);
		s->v[i].gpu = (signed char)(m->gpu_said ? m->gpu : -1);
	}
	if (s->n > 0)
		qsort(s->v, s->n, sizeof(*s->v), by_source);
	mr_catalog_free(&c);
	return 0;
}

static const struct source *
find_source(const struct sources *s, const char *id)
{
	return s->n == 0 ? NULL : bsearch(id, s->v, s->n, sizeof(*s->v),
	    by_source);
}

/* ids of a manifest, sorted: which are there? */
static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **
ids_of(const struct mr_manifest *m)
{
	const char **ids;
	size_t i;

	ids = mr_malloc((m->n + 1) * sizeof(*ids));
	for (i = 0; i < m->n; i++)
		ids[i] = m->entry[i].id;
	if (m->n > 0)
		qsort(ids, m->n, sizeof(*ids), by_text);
	return ids;
}

static int
is_in(const char *id, const char *const *ids, size_t n)
{
	return n > 0 && bsearch(&id, ids, n, sizeof(*ids), by_text) != NULL;
}

/* Appends from EXTRA the entries of models that M lacks and a map has. */
static void
append(struct mr_manifest *m, const struct mr_manifest *extra,
    const struct sources *s)
{
	const char **ids;
	size_t i;
	char *lacks;

	/* the ids move when M grows: so first look, then add */
	ids = ids_of(m);
	lacks = mr_malloc(extra->n + 1);
	for (i = 0; i < extra->n; i++)
		lacks[i] = !is_in(extra->entry[i].id, ids, m->n) &&
		    find_source(s, extra->entry[i].id) != NULL;
	free(ids);
	for (i = 0; i < extra->n; i++)
		if (lacks[i])
			mr_manifest_add(m, m->n, &extra->entry[i]);
	free(lacks);
}

/* What was built and has no entry would vanish in silence: refused. */
static int
check_entries(const struct mr_manifest *m, const struct sources *s,
    const struct opts *o, struct mr_err *e)
{
	struct artifact a;
	const char **ids;
	size_t i;
	int rc = 0;

	ids = ids_of(m);
	for (i = 0; rc == 0 && i < s->n; i++) {
		if (is_in(s->v[i].id, ids, m->n))
			continue;
		rc = read_artifact(&a, o->results, s->v[i].id, e);
		if (rc == 0 && a.there)
			rc = mr_fail(e, "%s: it is built, and no manifest has "
			    "an entry for it: add one to a file and name that "
			    "with -b (EXTRA_MANIFEST)", s->v[i].id);
		free(a.name);
	}
	free(ids);
	return rc;
}

/* Sets the members that say what the artifact is; drops older ones. */
static void
describe(struct mr_manifest *m, struct mr_entry *v, const struct artifact *a,
    const struct source *source, int digests)
{
	char text[MR_HEX + 2];

	mr_entry_del(v, "artifact_format");
	mr_entry_del(v, "artifact_size");
	mr_entry_del(v, "artifact_sha256");
	mr_entry_del(v, "artifact_urls");
	if (!a->multipart)
		mr_entry_del(v, "artifact_url");
	if (source != NULL && source->gpu != -1)
		mr_entry_set(m, v, "uses_external_gpu",
		    source->gpu ? "true" : "false");
	if (!digests || !a->there)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)a->size);
	mr_entry_set(m, v, "artifact_size", text);
	snprintf(text, sizeof(text), "\"%s\"", a->sha256);
	mr_entry_set(m, v, "artifact_sha256", text);
	mr_entry_set(m, v, "artifact_format", "\"tinygrad_single_v1\"");
}

/* Leaves out what was not built, and names it; V goes with the entries. */
static void
leave_out(struct mr_manifest *m, struct artifact *v, const struct opts *o)
{
	size_t i, n;

	for (i = n = 0; i < m->n; i++)
		n += !v[i].there;
	if (n > 0 && !o->quiet) {
		fprintf(stderr, "manifest-gen: %zu not built%s:", n,
		    o->unbuilt ? ", kept" : ", left out");
		for (i = 0; i < m->n; i++)
			if (!v[i].there)
				fprintf(stderr, " %s", m->entry[i].id);
		fputc('\n', stderr);
	}
	if (o->unbuilt)
		return;
	for (i = n = 0; i < m->n; i++) {
		if (!v[i].there) {
			free(m->entry[i].member);
			continue;
		}
		m->entry[n] = m->entry[i];
		v[n] = v[i];
		v[n].id = m->entry[n].id;
		n++;
	}
	m->n = n;
}

/* Does WORD stand in the list of the command line? */
static int
named(char *const ids[], const char *word)
{
	for (; *ids != NULL; ids++)
		if (strcmp(*ids, word) == 0)
			return 1;
	return 0;
}

/* the next entry from *I on that an update does not concern, or NULL */
static const struct mr_entry *
other(const struct mr_manifest *m, size_t *i, char *const ids[])
{
	for (; *i < m->n; (*i)++)
		if (!named(ids, m->entry[*i].id))
			return &m->entry[(*i)++];
	return NULL;
}

/* Proves that M differs from the manifest that it replaces only in IDS. */
static int
check_update(const struct mr_manifest *m, const struct opts *o,
    struct mr_err *e)
{
	const struct mr_entry *was, *is;
	struct mr_manifest old;
	size_t i = 0, k = 0;
	int rc;

	if (mr_manifest_load(&old, o->old, e) == -1)
		return -1;
	do {
		was = other(&old, &i, o->ids);
		is = other(m, &k, o->ids);
		if (was == NULL && is == NULL)
			break;
		rc = was != NULL && is != NULL && mr_entry_same(was, is);
	} while (rc);
	rc = 0;
	if (was != NULL && is != NULL && strcmp(was->id, is->id) == 0)
		rc = mr_fail(e, "%s: %s: would change, and was not named",
		    o->old, was->id);
	else if (was != NULL || is != NULL)
		rc = mr_fail(e, "%s: has %s where %s is made, and the update "
		    "names neither", o->old, was ? was->id : "nothing",
		    is ? is->id : "nothing");
	mr_manifest_free(&old);
	return rc;
}

/* Makes M what the records say; its text, or NULL. */
static char *
make(struct mr_manifest *m, const struct sources *s, const struct opts *o,
    size_t *len, struct mr_err *e)
{
	struct artifact *v;
	char *text = NULL;
	size_t i, n;
	int rc = 0;

	n = m->n;
	v = mr_malloc(n * sizeof(*v));
	memset(v, 0, n * sizeof(*v));
	for (i = 0; rc == 0 && i < n; i++)
		rc = read_artifact(&v[i], o->results, m->entry[i].id, e);
	if (rc == 0)
		rc = check_names(v, n, e);
	if (rc == 0) {
		for (i = 0; i < n; i++)
			describe(m, &m->entry[i], &v[i],
			    find_source(s, m->entry[i].id), o->digests);
		leave_out(m, v, o);
		n = m->n;
		if (o->old != NULL)
			rc = check_update(m, o, e);
	}
	if (rc == 0)
		text = o->multipart ? multipart(v, n, len, e) :
		    mr_manifest_text(m, len);
	for (i = 0; i < n; i++)
		free(v[i].name);
	free(v);
	return text;
}

/* Loads, makes, and returns the text or NULL. */
static char *
run(struct opts *o, size_t *len, struct mr_err *e)
{
	struct mr_manifest m[FILES_MAX];
	struct sources s;
	char *text = NULL;
	size_t i;

	memset(m, 0, sizeof(m));
	if (load_sources(&s, o->maps, e) == -1)
		return NULL;
	for (i = 0; i < o->nbases; i++) {
		if (mr_manifest_load(&m[i], o->bases[i], e) == -1)
			break;
		if (i > 0)
			append(&m[0], &m[i], &s);
	}
	if (i == o->nbases && check_entries(&m[0], &s, o, e) == 0)
		text = make(&m[0], &s, o, len, e);
	while (i-- > 0)
		mr_manifest_free(&m[i]);
	free(s.v);
	return text;
}

static int
write_out(const char *path, const char *text, size_t n)
{
	struct mr_out out;
	struct mr_err e;

	if (path == NULL) {
		fwrite(text, 1, n, stdout);
		return MR_OK;	/* mr_finish sees what was lost */
	}
	if (mr_out_open(&out, path, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	if (mr_write(out.fd, text, n) == -1)
		err(MR_UNFIT, "%s: write", path);
	if (mr_out_commit(&out, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	return MR_OK;
}

int
main(int argc, char *argv[])
{
	static struct opts o;
	const char *file = NULL;
	struct mr_err e;
	char *text;
	size_t n;
	int c, status;

	while ((c = getopt(argc, argv, "ab:dm:Mo:qr:U:hV")) != -1)
		switch (c) {
		case 'a':
			o.unbuilt = 1;
			break;
		case 'b':
		case 'm':
			if (o.nbases == FILES_MAX || o.nmaps == FILES_MAX)
				errx(MR_UNFIT, "more than %d files", FILES_MAX);
			if (c == 'b')
				o.bases[o.nbases++] = optarg;
			else
				o.maps[o.nmaps++] = optarg;
			break;
		case 'd':
			o.digests = 1;
			break;
		case 'M':
			o.multipart = 1;
			break;
		case 'o':
			file = optarg;
			break;
		case 'q':
			o.quiet = 1;
			break;
		case 'r':
			o.results = optarg;
			break;
		case 'U':
			o.old = optarg;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	o.ids = argv + optind;
	if (o.nbases == 0 || o.results == NULL || *o.results == '\0' ||
	    (o.old == NULL) != (argc == optind))
		return usage(stderr);
	text = run(&o, &n, &e);
	if (text == NULL)
		warnx("%s", e.text);
	status = text != NULL ? write_out(file, text, n) : MR_NO;
	free(text);
	return mr_finish(status);
}
