/* What is stale and why: records against keys and sizes, never dates. */
#include <sys/stat.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph-gen.h"

enum { THREADS = 4 };

const char *const stage_name[STAGES] = { "fetch", "compile", "ready" };

/* one thread's share; libjq counts references without locks, so no value is
 * seen by two threads: each parses what it reads */
struct share {
	struct state		*state;
	size_t			 n;
	const struct wanted	*wanted;
	const struct ready	*ready;
	const struct mr_key	*device;	/* NULL: compiler unknown */
};

int64_t
size_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) == -1 || !S_ISREG(st.st_mode))
		return -1;
	return (int64_t)st.st_size;
}

/* Loads a record, which the caller frees; null where there is none. One that
 * cannot be read sets *BAD, which the caller frees too. THIN leaves out what
 * only explains, which is most of it. */
static struct mr_json
load(const struct wanted *w, const char *id, const char *kind, int thin,
    char **bad)
{
	static const char *const decides[] = { "key", "files", "component",
	    "size", "sha256", "ready", "parts", "name", NULL };
	struct mr_json j;
	struct mr_err e;
	char *path;

	*bad = NULL;
	path = mr_fmt("%s/%s_%s.json", w->results, id, kind);
	if (mr_json_load_only(&j, path, thin ? decides : NULL, &e) == -1) {
		if (errno != ENOENT)
			*bad = mr_strdup(e.text);
		j = mr_json_null();
	} else if (mr_json_type(j) != MR_JSON_OBJECT) {
		*bad = mr_fmt("%s: wanted an object", path);
	}
	free(path);
	return j;
}

/* adds a line for sha-verify, if the record names a digest at all */
static void
verify(struct state *s, struct mr_json rec, const char *path)
{
	const char *digest;
	char *old = s->verify;

	digest = mr_json_str(rec, "sha256", "");
	if (!mr_oid_ok(digest))
		return;
	s->verify = mr_fmt("%s%s  %s\n", old ? old : "", digest, path);
	free(old);
}

char *
check_file(const char *path, int64_t size)
{
	int64_t is;

	is = size_of(path);
	if (is == -1)
		return mr_fmt("%s: missing", path);
	if (is != size)
		return mr_fmt("%s: %lld bytes, wanted %lld", path,
		    (long long)is, (long long)size);
	return NULL;
}

/* why a record is not of this key, or NULL */
static char *
check_key(const struct mr_key *k, struct mr_json rec, const char *none)
{
	char hex[MR_HEX], *why;

	if (mr_json_type(rec) != MR_JSON_OBJECT)
		return mr_strdup(none);
	mr_key_digest(k, hex);
	if (strcmp(mr_json_str(rec, "key", ""), hex) == 0)
		return NULL;
	why = mr_one_line(mr_key_diff(k, rec, ""));
	return why != NULL ? why : mr_strdup("key: does not match its lines");
}

/* Why member I of a source record is none that source-fetch writes, or NULL;
 * until then nothing in it is a part of a path. */
static char *
check_member(struct mr_json files, size_t i)
{
	struct mr_json f;
	const char *component;
	size_t k;

	f = mr_json_at(files, i);
	component = mr_json_str(f, "component", "");
	if (!mr_component_ok(component))
		return mr_fmt("files: component \"%.40s\" is unknown",
		    component);
	for (k = 0; k < i; k++)
		if (strcmp(component, mr_json_str(mr_json_at(files, k),
		    "component", "")) == 0)
			return mr_fmt("files: component %s is there twice",
			    component);
	if (mr_json_int(f, "size", -1) < 0)
		return mr_fmt("files: %s: size is no number of bytes",
		    component);
	if (!mr_oid_ok(mr_json_str(f, "sha256", "")))
		return mr_fmt("files: %s: sha256 is not 64 hex digits",
		    component);
	return NULL;
}

static void
look_fetch(struct state *s, struct mr_json source, const struct wanted *w)
{
	struct mr_json files, f;
	struct mr_key k;
	char *path, *why = NULL;
	size_t i;

	mr_key_fetch(&k, s->model->format, s->model->gpu, s->model->ref);
	s->stale[FETCH] = check_key(&k, source, "not fetched yet");
	mr_key_free(&k);
	files = mr_json_get(source, "files");
	if (mr_json_type(files) != MR_JSON_ARRAY || mr_json_len(files) == 0)
		why = mr_strdup("files: the record has none");
	for (i = 0; why == NULL && i < mr_json_len(files); i++) {
		why = check_member(files, i);
		if (why != NULL)
			break;
		f = mr_json_at(files, i);
		path = mr_fmt("onnx/%s/%s_%s.onnx", s->model->id,
		    s->model->id, mr_json_str(f, "component", ""));
		why = check_file(path, mr_json_int(f, "size", -1));
		/* there, right or not */
		s->exists[FETCH] |= why == NULL || size_of(path) >= 0;
		if (w->detail)
			verify(s, f, path);
		free(path);
	}
	if (s->stale[FETCH] == NULL)
		s->stale[FETCH] = why;
	else
		free(why);
}

static void
look_compile(struct state *s, struct mr_json source, struct mr_json artifact,
    const struct share *sh)
{
	struct mr_key k;
	char *path, *why = NULL;
	int64_t size;

	path = mr_fmt("compiled/%s.pkl", s->model->id);
	size = size_of(path);
	s->exists[COMPILE] = size >= 0;
	if (size > 0)
		s->size = (uint64_t)size;
	if (s->stale[FETCH] != NULL) {
		why = mr_strdup("its sources are to be fetched");
	} else if (s->model->version == NULL) {
		why = mr_strdup("refused: no manifest has its version: add an "
		    "entry to EXTRA_MANIFEST");
	} else if (mr_json_type(artifact) != MR_JSON_OBJECT) {
		why = mr_strdup("not compiled yet");
	} else if (sh->device == NULL ||
	    mr_json_str(artifact, "key", "")[0] == '\0') {
		why = mr_strdup("compiler unknown");
	} else {
		mr_key_compile(&k, s->model->format, s->model->version,
		    s->model->gpu, source, sh->device);
		why = check_key(&k, artifact, "");
		mr_key_free(&k);
	}
	if (why == NULL && !mr_oid_ok(mr_json_str(artifact, "sha256", "")))
		why = mr_strdup("sha256: is not 64 hex digits");
	if (why == NULL)
		why = check_file(path, mr_json_int(artifact, "size", -1));
	s->stale[COMPILE] = why;
	if (sh->wanted->detail)
		verify(s, artifact, path);
	free(path);
}

/* the line of sha-verify for what is to be uploaded: whole or in parts, it
 * has the artifact's digest */
static void
verify_ready(struct state *s, struct mr_json artifact, struct mr_json ready)
{
	char *path;

	if (mr_json_type(ready) != MR_JSON_OBJECT)
		return;
	path = mr_fmt("ready-for-resources/%s_driving_tinygrad.pkl",
	    s->model->id);
	verify(s, artifact, path);
	free(path);
}

static void
look_ready(struct state *s, struct mr_json artifact, const struct share *sh)
{
	struct mr_json ready;
	struct mr_key k;
	char *why;

	ready = mr_json_get(artifact, "ready");
	s->exists[READY] = mr_json_type(ready) == MR_JSON_OBJECT;
	if (s->stale[COMPILE] != NULL) {
		why = mr_strdup("its artifact is to be compiled");
	} else {
		mr_key_ready(&k, mr_json_str(artifact, "sha256", ""),
		    sh->wanted->limit, sh->wanted->part);
		why = check_key(&k, ready, "not split yet");
		mr_key_free(&k);
	}
	if (why == NULL)
		why = ready_check(sh->ready, s->model->id, artifact);
	s->stale[READY] = why;
	if (sh->wanted->detail && s->exists[READY])
		verify_ready(s, artifact, ready);
}

/* the failure record, for reports */
static void
look_failure(struct state *s, const struct wanted *w)
{
	struct mr_json rec;
	const char *error, *stage;
	char *bad;

	rec = load(w, s->model->id, "failure", 0, &bad);
	free(bad);
	if (mr_json_type(rec) == MR_JSON_OBJECT) {
		error = mr_json_str(rec, "error", "?");
		stage = mr_json_str(rec, "stage", "?");
		s->failed = mr_one_line(mr_fmt("%.40s: %.400s", stage, error));
		s->lost = strcmp(stage, stage_name[FETCH]) == 0 &&
		    strstr(error, "source lost") != NULL;
	}
	mr_json_free(rec);
}

/* a record that cannot be read says so, where it would seem not to exist */
static void
blame(struct state *s, int stage, char *bad)
{
	if (bad == NULL)
		return;
	free(s->stale[stage]);
	s->stale[stage] = mr_one_line(bad);
}

static void
look(struct state *s, const struct share *sh, int thin)
{
	struct mr_json source, artifact;
	char *bad_source, *bad_artifact;

	source = load(sh->wanted, s->model->id, "source", thin, &bad_source);
	artifact = load(sh->wanted, s->model->id, "artifact", thin,
	    &bad_artifact);
	look_fetch(s, source, sh->wanted);
	blame(s, FETCH, bad_source);
	look_compile(s, source, artifact, sh);
	blame(s, COMPILE, bad_artifact);
	look_ready(s, artifact, sh);
	if (sh->wanted->detail)
		look_failure(s, sh->wanted);
	mr_json_free(source);
	mr_json_free(artifact);
}

void
forget(struct state *s)
{
	int g;

	for (g = 0; g < STAGES; g++) {
		free(s->stale[g]);
		s->stale[g] = NULL;
	}
	free(s->failed);
	free(s->verify);
	s->failed = s->verify = NULL;
}

static void *
work(void *arg)
{
	struct share *sh = arg;
	struct state *s;
	size_t i;
	int g;

	for (i = 0; i < sh->n; i++) {
		s = &sh->state[i];
		look(s, sh, 1);
		/* what is stale is looked at once more, to say why */
		for (g = 0; g < STAGES && s->stale[g] == NULL; g++)
			;
		if (g < STAGES) {
			forget(s);
			look(s, sh, 0);
		}
	}
	return NULL;
}

/* the compiler's share of the keys; 0 if the compiler is unknown */
static int
load_device(struct mr_key *k, const char *path)
{
	struct mr_json identity;
	struct mr_err e;
	int rc;

	if (path == NULL || mr_json_load(&identity, path, &e) == -1)
		identity = mr_json_null();
	rc = mr_key_device(k, identity);
	mr_json_free(identity);
	return rc == 0;
}

void
evaluate(struct state *s, size_t n, const struct wanted *w)
{
	struct share sh[THREADS];
	pthread_t thread[THREADS];
	int joinable[THREADS] = { 0 };
	struct ready ready;
	struct mr_key device;
	int known;
	size_t i, at = 0, many;
	char hex[MR_HEX];
	long cpus;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	many = cpus < 1 ? 1 : cpus > THREADS ? THREADS : (size_t)cpus;
	if (n < 200)
		many = 1;	/* a thread costs more than it brings */
	ready_load(&ready);
	known = load_device(&device, w->identity);
	mr_sha256_buf("", 0, hex);	/* OpenSSL is set up by one thread */
	for (i = 0; i < many; i++) {
		memset(&sh[i], 0, sizeof(sh[i]));
		sh[i].state = s + at;
		sh[i].n = i + 1 == many ? n - at : n / many;
		sh[i].wanted = w;
		sh[i].ready = &ready;
		sh[i].device = known ? &device : NULL;
		at += sh[i].n;
		joinable[i] = i + 1 < many && pthread_create(&thread[i],
		    NULL, work, &sh[i]) == 0;
		if (!joinable[i])
			work(&sh[i]);
	}
	for (i = 0; i < many; i++)
		if (joinable[i])
			pthread_join(thread[i], NULL);
	ready_free(&ready);
	mr_key_free(&device);
}
