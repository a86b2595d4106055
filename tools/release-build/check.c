/* What the records have against a release. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "release-build.h"

static const char suffix[] = "_driving_tinygrad.pkl";

/* Does the list have this line? */
static int
has_line(struct mr_json lines, const char *name, const char *value)
{
	const char *line;
	size_t i, n = strlen(name);

	for (i = 0; i < mr_json_len(lines); i++) {
		line = mr_json_text(mr_json_at(lines, i));
		if (line != NULL && strncmp(line, name, n) == 0 &&
		    line[n] == '=' && strcmp(line + n + 1, value) == 0)
			return 1;
	}
	return 0;
}

/* Is the key of RECORD the digest of its lines? */
static int
key_holds(struct mr_json record)
{
	struct mr_json lines;
	struct mr_sha256 *h;
	char hex[MR_HEX];
	const char *line;
	size_t i;

	lines = mr_json_get(record, "key_lines");
	h = mr_sha256_new();
	for (i = 0; i < mr_json_len(lines); i++) {
		line = mr_json_text(mr_json_at(lines, i));
		if (line == NULL)
			line = "";
		mr_sha256_add(h, line, strlen(line));
		mr_sha256_add(h, "\n", 1);
	}
	mr_sha256_end(h, hex);
	return strcmp(mr_json_str(record, "key", ""), hex) == 0;
}

/* Loads RESULTS/ID_KIND.json: 1, 0 if there is none, -1 (said). */
static int
load(const struct release *r, const char *id, const char *kind,
    struct mr_json *j)
{
	struct mr_err e;
	char *path;
	int rc;

	path = mr_fmt("%s/%s_%s.json", r->results, id, kind);
	rc = mr_json_load(j, path, &e);
	free(path);
	if (rc == 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	warnx("%s: %s", id, e.text);
	return -1;
}

/* Did the device find the model unfit? */
static int
check_validation(const struct release *r, const struct model *m)
{
	struct mr_json j;
	const char *why = NULL;
	int rc;

	rc = load(r, m->id, "validation", &j);
	if (rc != 1)
		return rc == 0 ? MR_OK : MR_NO;
	if (strcmp(mr_json_str(j, "sha256", m->sha256), m->sha256) != 0)
		why = NULL;	/* it is of an older artifact */
	else if (strcmp(mr_json_str(j, "status", ""), "failed") == 0)
		why = "status is failed";
	else if (mr_json_len(mr_json_get(j, "missing")) > 0)
		why = "outputs are missing";
	else if (mr_json_len(mr_json_get(j, "non_finite")) > 0)
		why = "outputs are not finite";
	else if (!mr_json_bool(j, "has_control_output", 1))
		why = "it has no control output";
	mr_json_free(j);
	if (why == NULL)
		return MR_OK;
	warnx("%s: its validation failed: %s: %s/%s_validation.json", m->id,
	    why, r->results, m->id);
	return MR_NO;
}

/* Was the artifact made of the sources that are there now? */
static int
check_source(const struct release *r, const struct model *m)
{
	struct mr_json j, files, f, lines;
	int rc, stale = 0;
	size_t i;

	rc = load(r, m->id, "source", &j);
	if (rc != 1)
		return rc == 0 ? MR_OK : MR_NO;
	files = mr_json_get(j, "files");
	lines = mr_json_get(m->record, "key_lines");
	for (i = 0; i < mr_json_len(files); i++) {
		f = mr_json_at(files, i);
		stale |= !has_line(lines, mr_json_str(f, "component", ""),
		    mr_json_str(f, "sha256", "?"));
	}
	mr_json_free(j);
	if (!stale)
		return MR_OK;
	warnx("%s: stale: its artifact was made of other sources: "
	    "make compiled/%s.pkl", m->id, m->id);
	return MR_NO;
}

/* one file of the upload set, as the record has it */
static int
add_piece(const struct release *r, struct model *m, const char *rest,
    int64_t size)
{
	struct piece *p;
	struct stat st;
	char *path;
	int status = MR_OK;

	m->piece = mr_realloc(m->piece,
	    (m->npieces + 1) * sizeof(*m->piece));
	p = &m->piece[m->npieces++];
	p->name = mr_fmt("%s%s", suffix, rest);	/* its id comes later */
	p->size = (uint64_t)size;
	path = mr_fmt("%s/%s%s%s", r->ready, m->id, suffix, rest);
	if (stat(path, &st) == -1) {
		warnx("%s: %s: %s: make ready/%s", m->id, path, errno ==
		    ENOENT ? "missing" : strerror(errno), m->id);
		status = MR_NO;
	} else if (!S_ISREG(st.st_mode) || st.st_size != size) {
		warnx("%s: %s: %lld bytes, wanted %lld: make ready/%s", m->id,
		    path, (long long)st.st_size, (long long)size, m->id);
		status = MR_NO;
	} else if (p->size > r->limit) {
		warnx("%s: %s: %lld bytes, the host takes %llu: set "
		    "SPLIT_LIMIT and PART_SIZE", m->id, path, (long long)size,
		    (unsigned long long)r->limit);
		status = MR_NO;
	}
	free(path);
	return status;
}

/* the upload set: all parts, of the right names and sizes */
static int
check_set(const struct release *r, struct model *m)
{
	struct mr_json ready, parts, part;
	char rest[8], name[160];
	int status = MR_OK;
	uint64_t sum = 0;
	int64_t size;
	size_t i;

	ready = mr_json_get(m->record, "ready");
	parts = mr_json_get(ready, "parts");
	snprintf(name, sizeof(name), "%s%s", m->id, suffix);
	if (mr_json_type(parts) != MR_JSON_ARRAY || !key_holds(ready) ||
	    !has_line(mr_json_get(ready, "key_lines"), "artifact",
	    m->sha256) ||
	    strcmp(mr_json_str(ready, "name", ""), name) != 0) {
		warnx("%s: is not cut for upload: make ready/%s", m->id,
		    m->id);
		return MR_NO;
	}
	m->parts = mr_json_len(parts) > 0;
	if (!m->parts)
		return add_piece(r, m, "", (int64_t)m->size);
	for (i = 0; i < mr_json_len(parts) && i < 100; i++) {
		part = mr_json_at(parts, i);
		size = mr_json_int(part, "size", 0);
		snprintf(rest, sizeof(rest), ".p%02zu", i);
		status = mr_worse(status, add_piece(r, m, rest, size));
		sum += (uint64_t)size;
	}
	if (sum != m->size) {
		warnx("%s: its parts have %llu bytes, the artifact %llu: "
		    "make ready/%s", m->id, (unsigned long long)sum,
		    (unsigned long long)m->size, m->id);
		status = MR_NO;
	}
	return status;
}

int
check_model(const struct release *r, struct model *m)
{
	const char *hex;
	int64_t size;
	int status, rc;

	rc = load(r, m->id, "artifact", &m->record);
	if (rc != 1) {
		m->record = mr_json_null();
		if (rc == 0)
			warnx("%s: has no artifact: make compiled/%s.pkl, or "
			    "leave it out of the manifest", m->id, m->id);
		return MR_NO;
	}
	hex = mr_json_str(m->record, "sha256", "");
	size = mr_json_int(m->record, "size", 0);
	if (!mr_oid_ok(hex) || size <= 0 ||
	    strcmp(mr_json_str(m->record, "id", ""), m->id) != 0) {
		warnx("%s: %s/%s_artifact.json: wanted its id, a size and a "
		    "sha256", m->id, r->results, m->id);
		return MR_NO;
	}
	m->size = (uint64_t)size;
	memcpy(m->sha256, hex, MR_HEX);
	if (*mr_json_str(m->record, "toolchain", "") == '\0') {
		warnx("%s: made by an unknown compiler: make compiled/%s.pkl",
		    m->id, m->id);
		return MR_NO;
	}
	status = check_validation(r, m);
	if (!key_holds(m->record)) {
		warnx("%s: stale: its record has no key that holds: "
		    "make compiled/%s.pkl", m->id, m->id);
		return MR_NO;
	}
	status = mr_worse(status, check_source(r, m));
	return mr_worse(status, check_set(r, m));
}

/* the compiler of a record */
static const char *
compiler(const struct model *m)
{
	return mr_json_str(m->record, "toolchain", "");
}

/* prints one line: a compiler and its models */
static void
say_models(const struct release *r, const char *toolchain)
{
	const char *tinygrad = "";
	size_t i;

	for (i = 0; i < r->n; i++)
		if (strcmp(compiler(&r->model[i]), toolchain) == 0)
			tinygrad = mr_json_str(r->model[i].record, "tinygrad",
			    "?");
	fprintf(stderr, "release-build: tinygrad %s, toolchain %.16s:",
	    tinygrad, toolchain);
	for (i = 0; i < r->n; i++)
		if (strcmp(compiler(&r->model[i]), toolchain) == 0)
			fprintf(stderr, " %s", r->model[i].id);
	fputc('\n', stderr);
}

/* of the compiler that was read from the device? */
static int
check_identity(const struct release *r)
{
	struct mr_json j;
	const char *now;
	struct mr_err e;
	int status = MR_OK;
	size_t i;

	if (r->identity == NULL)
		return MR_OK;
	if (mr_json_load(&j, r->identity, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	now = mr_json_str(j, "toolchain", "");
	for (i = 0; i < r->n; i++)
		if (strcmp(compiler(&r->model[i]), now) != 0) {
			warnx("%s: stale: made by toolchain %.16s, it is %.16s "
			    "now: make compiled/%s.pkl", r->model[i].id,
			    compiler(&r->model[i]), now, r->model[i].id);
			status = MR_NO;
		}
	mr_json_free(j);
	return status;
}

int
check_toolchain(const struct release *r)
{
	size_t i, k, kinds = 0;

	for (i = 0; i < r->n; i++) {
		for (k = 0; k < i; k++)
			if (strcmp(compiler(&r->model[i]),
			    compiler(&r->model[k])) == 0)
				break;
		kinds += k == i;
	}
	if (kinds <= 1)
		return check_identity(r);
	warnx("%s: artifacts of %zu toolchains, wanted one:", r->version,
	    kinds);
	for (i = 0; i < r->n; i++) {
		for (k = 0; k < i; k++)
			if (strcmp(compiler(&r->model[i]),
			    compiler(&r->model[k])) == 0)
				break;
		if (k == i)
			say_models(r, compiler(&r->model[i]));
	}
	return mr_worse(MR_NO, check_identity(r));
}
