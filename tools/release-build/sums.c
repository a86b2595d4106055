/* release.json and SHA256SUMS: what is in a release. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "release-build.h"

#define SUMS "SHA256SUMS"

/* one model in release.json */
static struct mr_json
describe(const struct model *m)
{
	struct mr_json j, parts;
	char *name;
	size_t i;

	j = mr_json_object();
	mr_json_set_str(&j, "id", m->new);
	mr_json_set_str(&j, "source_id", m->id);
	mr_json_set_str(&j, "backend", mr_json_str(m->record, "backend", ""));
	mr_json_set_str(&j, "device", mr_json_str(m->record, "device", ""));
	mr_json_set_int(&j, "size", m->size);
	mr_json_set_str(&j, "sha256", m->sha256);
	name = mr_fmt("%s_driving_tinygrad.pkl", m->new);
	mr_json_set_str(&j, "filename", name);
	free(name);
	parts = mr_json_array();
	for (i = 0; m->parts && i < m->npieces; i++)
		mr_json_push(&parts, mr_json_string(m->piece[i].name));
	mr_json_set(&j, "parts", parts);
	return j;
}

static int
write_json(const struct release *r, struct mr_err *e)
{
	struct mr_json j, models, first;
	char *path;
	size_t i;
	int rc;

	first = r->n > 0 ? r->model[0].record : mr_json_null();
	j = mr_json_object();
	mr_json_set_str(&j, "version", r->version);
	mr_json_set_str(&j, "suffix", r->suffix);
	mr_json_set_str(&j, "tinygrad", mr_json_str(first, "tinygrad", ""));
	mr_json_set_str(&j, "toolchain", mr_json_str(first, "toolchain", ""));
	models = mr_json_array();
	for (i = 0; i < r->n; i++)
		mr_json_push(&models, describe(&r->model[i]));
	mr_json_set(&j, "models", models);
	path = mr_fmt("%s/release.json", r->tmp);
	rc = mr_json_save(j, path, e);
	free(path);
	mr_json_free(j);
	return rc;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* the digest that is known already, or NULL */
static const char *
known(const struct release *r, const char *name)
{
	size_t i, k;

	for (i = 0; i < r->n; i++)
		for (k = 0; k < r->model[i].npieces; k++)
			if (strcmp(r->model[i].piece[k].name, name) == 0)
				return r->model[i].piece[k].sha256;
	return NULL;
}

/* "digest  name\n" of one file; the caller frees */
static char *
line(const struct release *r, const char *name, struct mr_err *e)
{
	const char *hex;
	char own[MR_HEX], *path, *text = NULL;
	uint64_t size;
	int rc = 0;

	hex = known(r, name);
	if (hex == NULL) {
		path = mr_fmt("%s/%s", r->tmp, name);
		rc = mr_sha256_file(path, own, &size, e);
		free(path);
		hex = own;
	}
	if (rc == 0)
		text = mr_fmt("%s  %s\n", hex, name);
	return text;
}

/* the names in the folder, sorted; the caller frees */
static char **
list(const char *dir, size_t *n, struct mr_err *e)
{
	struct dirent *d;
	char **names = NULL;
	DIR *f;

	f = opendir(dir);
	if (f == NULL) {
		mr_fail(e, "%s: %s", dir, strerror(errno));
		return NULL;
	}
	names = mr_malloc(sizeof(*names));
	for (*n = 0; (d = readdir(f)) != NULL; ) {
		if (d->d_name[0] == '.')
			continue;	/* itself, and what is being written */
		names = mr_realloc(names, (*n + 1) * sizeof(*names));
		names[(*n)++] = mr_strdup(d->d_name);
	}
	closedir(f);
	qsort(names, *n, sizeof(*names), by_text);
	return names;
}

int
sums_write(const struct release *r, struct mr_err *e)
{
	struct mr_out out;
	char *path, *text, **names;
	size_t i, n;
	int rc;

	if (write_json(r, e) == -1)
		return -1;
	names = list(r->tmp, &n, e);
	if (names == NULL)
		return -1;
	path = mr_fmt("%s/" SUMS, r->tmp);
	rc = mr_out_open(&out, path, e);
	free(path);
	for (i = 0; i < n; i++) {
		text = rc == 0 ? line(r, names[i], e) : NULL;
		if (rc == 0 && text == NULL)
			rc = -1;
		else if (rc == 0 && mr_write(out.fd, text, strlen(text)) == -1)
			rc = mr_fail(e, "%s: write: %s", out.tmp,
			    strerror(errno));
		free(text);
		free(names[i]);
	}
	free(names);
	if (rc == 0)
		return mr_out_commit(&out, e);
	mr_out_abort(&out);
	return -1;
}
