/* What is stale and why: records against keys and sizes, never dates. */
#include <sys/stat.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph-gen.h"

enum { THREADS = 4 };

const char *const stage_name[STAGES] = { "fetch", "compile", "ready" };

/* one thread's share; libjq counts references without locks, so each thread
 * parses what it reads */
struct share {
	struct state		*state;
	size_t			 n;
	const struct wanted	*wanted;
	struct mr_json		 identity, multipart;
};

/* the file's bytes, or -1 if there is no such regular file */
static int64_t
size_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) == -1 || !S_ISREG(st.st_mode))
		return -1;
	return (int64_t)st.st_size;
}

/* loads a record; type NONE when there is none that can be read */
static struct mr_json
record(const struct wanted *w, const char *id, const char *kind)
{
	struct mr_json j;
	struct mr_err e;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s_%s.json", w->results, id, kind);
	if (mr_json_load(&j, path, &e) == -1)
		return mr_json_get(mr_json_null(), "");
	return j;
}

/* adds a line for sha-verify */
static void
verify(struct state *s, const char *digest, const char *path)
{
	char *old = s->verify;

	s->verify = mr_fmt("%s%s  %s\n", old ? old : "", digest, path);
	free(old);
}

/* why PATH is not the product of SIZE bytes, or NULL */
static char *
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
	why = mr_key_diff(k, rec, "");
	return why != NULL ? why : mr_strdup("key: does not match its lines");
}

static void
look_fetch(struct state *s, struct mr_json source, const struct wanted *w)
{
	struct mr_json files, f;
	struct mr_key k;
	const char *component;
	char *path;
	size_t i;

	mr_key_fetch(&k, s->model->format, s->model->gpu, s->model->ref);
	s->stale[FETCH] = check_key(&k, source, "not fetched yet");
	mr_key_free(&k);
	files = mr_json_get(source, "files");
	for (i = 0; i < mr_json_len(files); i++) {
		f = mr_json_at(files, i);
		component = mr_json_str(f, "component", "");
		path = mr_fmt("onnx/%s/%s_%s.onnx", s->model->id,
		    s->model->id, component);
		if (!mr_component_ok(component) && s->stale[FETCH] == NULL)
			s->stale[FETCH] = mr_fmt("component: %.40s: unknown",
			    component);
		if (size_of(path) >= 0)
			s->exists[FETCH] = 1;
		if (s->stale[FETCH] == NULL)
			s->stale[FETCH] = check_file(path,
			    mr_json_int(f, "size", -1));
		if (w->detail)
			verify(s, mr_json_str(f, "sha256", "?"), path);
		free(path);
	}
	if (s->stale[FETCH] == NULL && i == 0)
		s->stale[FETCH] = mr_strdup("files: the record has none");
}

static void
look_compile(struct state *s, struct mr_json source, struct mr_json artifact,
    const struct share *sh)
{
	struct mr_key k;
	char *path;
	int64_t size;

	path = mr_fmt("compiled/%s.pkl", s->model->id);
	size = size_of(path);
	s->exists[COMPILE] = size >= 0;
	if (size > 0)
		s->size = (uint64_t)size;
	if (s->stale[FETCH] != NULL) {
		s->stale[COMPILE] = mr_strdup("its sources are to be fetched");
	} else if (s->model->version == NULL) {
		s->stale[COMPILE] = mr_strdup("refused: no manifest has its "
		    "version: add an entry to EXTRA_MANIFEST");
	} else if (mr_json_type(artifact) != MR_JSON_OBJECT) {
		s->stale[COMPILE] = mr_strdup("not compiled yet");
	} else if (mr_json_type(sh->identity) != MR_JSON_OBJECT) {
		s->stale[COMPILE] = mr_strdup("compiler unknown");
	} else {
		mr_key_compile(&k, s->model->format, s->model->version,
		    s->model->gpu, source, sh->identity);
		s->stale[COMPILE] = check_key(&k, artifact, "");
		mr_key_free(&k);
	}
	if (s->stale[COMPILE] == NULL)
		s->stale[COMPILE] = check_file(path,
		    mr_json_int(artifact, "size", -1));
	if (sh->wanted->detail && mr_json_type(artifact) == MR_JSON_OBJECT)
		verify(s, mr_json_str(artifact, "sha256", "?"), path);
	free(path);
}

/* why multipart.json does not say what READY says of ID, or NULL */
static char *
check_multipart(const struct share *sh, const char *id, size_t parts)
{
	struct mr_json entry;
	size_t i;

	for (i = 0; i < mr_json_len(sh->multipart); i++) {
		entry = mr_json_at(sh->multipart, i);
		if (strcmp(mr_json_str(entry, "id", ""), id) != 0)
			continue;
		if (mr_json_len(mr_json_get(entry, "parts")) == parts)
			return NULL;
		return mr_fmt("multipart.json: lists %zu parts, wanted %zu",
		    mr_json_len(mr_json_get(entry, "parts")), parts);
	}
	if (parts == 0 && mr_json_type(sh->multipart) == MR_JSON_ARRAY)
		return NULL;
	return mr_strdup(parts ? "multipart.json: has no entry" :
	    "multipart.json: missing");
}

/* why the files of a ready set are not those of its record, or NULL */
static char *
check_set(struct state *s, struct mr_json ready, struct mr_json artifact,
    const struct share *sh)
{
	struct mr_json parts, p;
	const char *name;
	char *path, *why = NULL;
	size_t i, n;

	parts = mr_json_get(ready, "parts");
	n = mr_json_len(parts);
	for (i = 0; i < n && why == NULL; i++) {
		p = mr_json_at(parts, i);
		name = mr_json_str(p, "name", "");
		path = mr_fmt("ready-for-resources/%s", name);
		why = strchr(name, '/') != NULL ? mr_fmt("parts: %s", name) :
		    check_file(path, mr_json_int(p, "size", -1));
		free(path);
	}
	path = mr_fmt("ready-for-resources/%s_driving_tinygrad.pkl",
	    s->model->id);
	if (why == NULL && n == 0)
		why = check_file(path, mr_json_int(artifact, "size", -1));
	else if (why == NULL && size_of(path) != -1)
		why = mr_fmt("%s: stands beside its parts", path);
	if (sh->wanted->detail && n == 0)
		verify(s, mr_json_str(artifact, "sha256", "?"), path);
	free(path);
	/* the marker of a set, and the first part that must not be there */
	path = mr_fmt("ready-for-resources/%s_driving_tinygrad.pkl.sha256",
	    s->model->id);
	if (why == NULL && n > 0 && size_of(path) == -1)
		why = mr_fmt("%s: missing", path);
	else if (why == NULL && n == 0 && size_of(path) != -1)
		why = mr_fmt("%s: stale", path);
	free(path);
	path = mr_fmt("ready-for-resources/%s_driving_tinygrad.pkl.p%02zu",
	    s->model->id, n);
	if (why == NULL && size_of(path) != -1)
		why = mr_fmt("%s: stale", path);
	free(path);
	if (why == NULL)
		why = check_multipart(sh, s->model->id, n);
	return why;
}

static void
look_ready(struct state *s, struct mr_json artifact, const struct share *sh)
{
	struct mr_json ready;
	struct mr_key k;

	ready = mr_json_get(artifact, "ready");
	s->exists[READY] = mr_json_type(ready) == MR_JSON_OBJECT;
	mr_key_ready(&k, mr_json_str(artifact, "sha256", "?"),
	    sh->wanted->limit, sh->wanted->part);
	s->stale[READY] = check_key(&k, ready, "not split yet");
	mr_key_free(&k);
	if (s->stale[READY] == NULL)
		s->stale[READY] = check_set(s, ready, artifact, sh);
	if (s->stale[COMPILE] != NULL) {
		free(s->stale[READY]);
		s->stale[READY] = mr_strdup("its artifact is to be compiled");
	}
}

/* the failure record, for reports */
static void
look_failure(struct state *s, const struct wanted *w)
{
	struct mr_json rec;
	const char *error, *stage;

	rec = record(w, s->model->id, "failure");
	if (mr_json_type(rec) != MR_JSON_OBJECT)
		return;
	error = mr_json_str(rec, "error", "?");
	stage = mr_json_str(rec, "stage", "?");
	s->failed = mr_fmt("%s: %s", stage, error);
	s->lost = strcmp(stage, stage_name[FETCH]) == 0 &&
	    strstr(error, "source lost") != NULL;
	mr_json_free(rec);
}

static void *
work(void *arg)
{
	struct share *sh = arg;
	struct mr_json source, artifact;
	struct mr_err e;
	size_t i;

	if (sh->wanted->identity == NULL ||
	    mr_json_load(&sh->identity, sh->wanted->identity, &e) == -1)
		sh->identity = mr_json_null();
	if (mr_json_load(&sh->multipart, "ready-for-resources/multipart.json",
	    &e) == -1)
		sh->multipart = mr_json_null();
	for (i = 0; i < sh->n; i++) {
		source = record(sh->wanted, sh->state[i].model->id, "source");
		artifact = record(sh->wanted, sh->state[i].model->id,
		    "artifact");
		look_fetch(&sh->state[i], source, sh->wanted);
		look_compile(&sh->state[i], source, artifact, sh);
		look_ready(&sh->state[i], artifact, sh);
		if (sh->wanted->detail)
			look_failure(&sh->state[i], sh->wanted);
		mr_json_free(source);
		mr_json_free(artifact);
	}
	mr_json_free(sh->identity);
	mr_json_free(sh->multipart);
	return NULL;
}

void
evaluate(struct state *s, size_t n, const struct wanted *w)
{
	struct share sh[THREADS];
	pthread_t thread[THREADS];
	size_t i, at = 0, many;
	char hex[MR_HEX];
	long cpus;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	many = cpus < 1 ? 1 : cpus > THREADS ? THREADS : (size_t)cpus;
	if (n < 200)
		many = 1;	/* a thread costs more than it brings */
	mr_sha256_buf("", 0, hex);	/* OpenSSL is set up by one thread */
	for (i = 0; i < many; i++) {
		memset(&sh[i], 0, sizeof(sh[i]));
		sh[i].state = s + at;
		sh[i].n = i + 1 == many ? n - at : n / many;
		sh[i].wanted = w;
		at += sh[i].n;
		if (i + 1 == many ||
		    pthread_create(&thread[i], NULL, work, &sh[i]) != 0) {
			work(&sh[i]);
			sh[i].wanted = NULL;	/* nobody to join */
		}
	}
	for (i = 0; i < many; i++)
		if (sh[i].wanted != NULL)
			pthread_join(thread[i], NULL);
}
