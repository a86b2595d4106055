/* Adopts what a Python pipeline left: digests checked, names and keys ours. */
#include <dirent.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workspace-init.h"

static const char suffix[] = "_driving_tinygrad.pkl";

/* one member of a source record as ours are, or null if the staged file does
 * not have its digest; the caller frees */
static struct mr_json
staged_member(const char *id, struct mr_json old)
{
	struct mr_json f;
	struct mr_err e;
	const char *named;
	char hex[MR_HEX], *component, *path;
	uint64_t size;
	size_t n;

	f = mr_json_null();
	named = mr_json_str(old, "component", "");
	n = strlen(named);	/* older records end it in .onnx */
	if (n > 5 && strcmp(named + n - 5, ".onnx") == 0)
		n -= 5;
	component = mr_fmt("%.*s", (int)n, named);
	path = mr_fmt("onnx/%s/%s_%s.onnx", id, id, component);
	if (mr_component_ok(component) &&
	    mr_sha256_file(path, hex, &size, &e) == 0 &&
	    strcmp(hex, mr_json_str(old, "sha256", "")) == 0) {
		f = mr_json_copy(old);
		mr_json_set_str(&f, "component", component);
		mr_json_set_str(&f, "path", path);
		mr_json_set_int(&f, "size", size);
	}
	free(component);
	free(path);
	return f;
}

/* is every staged file of a record there with its digest? sets the paths */
static int
staged_hold(const char *id, struct mr_json *rec)
{
	struct mr_json files, f, old;
	size_t i;
	int holds;

	old = mr_json_get(*rec, "files");
	holds = mr_json_type(old) == MR_JSON_ARRAY && mr_json_len(old) > 0;
	files = mr_json_array();
	for (i = 0; holds && i < mr_json_len(old); i++) {
		f = staged_member(id, mr_json_at(old, i));
		holds = mr_json_type(f) == MR_JSON_OBJECT;
		if (holds)
			mr_json_push(&files, f);
	}
	if (holds)
		mr_json_set(rec, "files", files);
	else
		mr_json_free(files);
	return holds;
}

/* gives a source record of the Python pipeline its key; 1: adopted */
static int
adopt_source(const char *id, const char *results)
{
	const char *format, *ref;
	struct mr_json rec;
	struct mr_key k;
	struct mr_err e;
	char *path;
	int adopted = 0;

	path = mr_fmt("%s/%s_source.json", results, id);
	if (mr_json_load(&rec, path, &e) == -1) {
		free(path);
		return 0;
	}
	format = mr_json_str(rec, "input_format", "");
	ref = mr_json_str(rec, "ref", "");
	if (mr_json_str(rec, "key", NULL) == NULL && mr_format_ok(format) &&
	    mr_ref_ok(ref) && staged_hold(id, &rec)) {
		mr_key_fetch(&k, format,
		    mr_json_bool(rec, "uses_external_gpu", 0), ref);
		mr_key_record(&k, &rec, "");
		mr_key_free(&k);
		if (mr_json_save(rec, path, &e) == -1)
			errx(MR_UNFIT, "%s", e.text);
		adopted = 1;
	}
	mr_json_free(rec);
	free(path);
	return adopted;
}

/* is OLD the artifact of its record? says why not */
static int
digest_holds(const char *old, struct mr_json rec, uint64_t *size)
{
	struct mr_err e;
	char hex[MR_HEX];
	const char *want;

	want = mr_json_str(rec, "sha256", "");
	if (mr_sha256_file(old, hex, size, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	if (strcmp(hex, want) == 0)
		return 1;
	warnx("%s: sha256 is %s, its record says \"%.64s\": left as it is",
	    old, hex, want);
	return 0;
}

/* gives an artifact its name here, then its record the path */
static void
take_over(const char *old, const char *new, const char *path,
    struct mr_json *rec, uint64_t size)
{
	struct mr_err e;

	if (rename(old, new) == -1)
		err(MR_UNFIT, "%s", new);
	if (mr_sync_dir(new) == -1)
		err(MR_UNFIT, "compiled");
	mr_json_set_str(rec, "path", new);
	mr_json_set_int(rec, "size", size);
	if (mr_json_save(*rec, path, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	printf("%s: adopted\n", new);
}

/* one artifact of the Python pipeline: checks its digest, renames it */
static int
adopt_artifact(const char *name, const char *results)
{
	struct mr_json rec;
	struct mr_err e;
	char *id, *old, *new, *path;
	uint64_t size;
	int status = MR_NO;

	id = mr_fmt("%.*s", (int)(strlen(name) - strlen(suffix)), name);
	old = mr_fmt("compiled/%s", name);
	new = mr_fmt("compiled/%s.pkl", id);
	path = mr_fmt("%s/%s_artifact.json", results, id);
	if (!mr_id_ok(id)) {
		warnx("%s: its name holds no model id: left as it is", old);
	} else if (access(new, F_OK) == 0) {
		warnx("%s: %s is there already: remove one", old, new);
	} else if (mr_json_load(&rec, path, &e) == -1) {
		warnx("%s: no record to check it against (%s): left as it is",
		    old, e.text);
	} else {
		if (digest_holds(old, rec, &size)) {
			adopt_source(id, results);
			take_over(old, new, path, &rec, size);
			status = MR_OK;
		}
		mr_json_free(rec);
	}
	free(id);
	free(old);
	free(new);
	free(path);
	return status;
}

int
adopt(const char *results)
{
	struct dirent *d;
	size_t n, end = strlen(suffix);
	int status = MR_OK;
	DIR *dir;

	dir = opendir("compiled");
	if (dir == NULL)
		err(MR_UNFIT, "compiled");
	while ((d = readdir(dir)) != NULL) {
		n = strlen(d->d_name);
		if (d->d_name[0] == '.' || n <= end ||
		    strcmp(d->d_name + n - end, suffix) != 0)
			continue;
		status = mr_worse(status, adopt_artifact(d->d_name,
		    results));
	}
	closedir(dir);
	return status;
}

void
adopt_sources(const struct mr_catalog *c, const char *results)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (adopt_source(c->models[i].id, results))
			printf("onnx/%s: adopted\n", c->models[i].id);
}

/* why an artifact cannot be trusted, or NULL: then it has the key that today's
 * compiler would give it */
static const char *
trust_artifact(const struct mr_model *m, const struct mr_key *device,
    struct mr_json *rec, const char *product, const char *results)
{
	struct mr_json source;
	struct mr_key k;
	struct mr_err e;
	char hex[MR_HEX], *path;
	uint64_t size;
	int holds, rc;

	if (m->version == NULL)
		return "no manifest has its version";
	if (mr_sha256_file(product, hex, &size, &e) == -1 ||
	    strcmp(hex, mr_json_str(*rec, "sha256", "")) != 0)
		return "its digest is not the recorded one";
	path = mr_fmt("%s/%s_source.json", results, m->id);
	rc = mr_json_load(&source, path, &e);
	free(path);
	if (rc == -1)
		return "its sources are not recorded";
	holds = mr_json_str(source, "key", NULL) != NULL &&
	    staged_hold(m->id, &source);
	if (holds) {
		mr_key_compile(&k, m->format, m->version, m->gpu, source,
		    device);
		mr_key_record(&k, rec, "");
		mr_key_free(&k);
		mr_json_set_int(rec, "size", size);
	}
	mr_json_free(source);
	return holds ? NULL : "its sources are not staged as recorded";
}

void
trust(const struct mr_catalog *c, const struct mr_key *device,
    const char *results)
{
	struct mr_json rec;
	struct mr_err e;
	const char *id, *why;
	char *path, *product;
	size_t i;

	for (i = 0; i < c->n; i++) {
		id = c->models[i].id;
		path = mr_fmt("%s/%s_artifact.json", results, id);
		product = mr_fmt("compiled/%s.pkl", id);
		if (access(product, F_OK) == 0 &&
		    mr_json_load(&rec, path, &e) == 0) {
			if (mr_json_type(rec) == MR_JSON_OBJECT &&
			    mr_json_str(rec, "key", NULL) == NULL) {
				why = trust_artifact(&c->models[i], device,
				    &rec, product, results);
				printf("%s: %s%s\n", product, why == NULL ?
				    "trusted as made by today's compiler" :
				    "not trusted: ", why == NULL ? "" : why);
				if (why == NULL &&
				    mr_json_save(rec, path, &e) == -1)
					errx(MR_UNFIT, "%s", e.text);
			}
			mr_json_free(rec);
		}
		free(product);
		free(path);
	}
}
