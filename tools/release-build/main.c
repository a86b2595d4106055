/* Upload sets and records -> a release: one folder, whole or not at all. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "release-build.h"

static int
usage(FILE *f)
{
	fputs("usage: release-build [-i IDENTITY] [-l LIMIT] [-t TABLE] "
	    "[-C READY] [-o FOLDER]\n"
	    "                     -r RESULTS -s SUFFIX -v VERSION -k IDMAP "
	    "MANIFEST\n"
	    "       release-build -h | -V\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* the models of the manifest, and what their records say */
static int
load(struct release *r)
{
	struct mr_manifest m;
	struct mr_err e;
	int status = MR_OK;
	size_t i;

	if (mr_manifest_load(&m, r->manifest, &e) == -1) {
		warnx("%s", e.text);
		return MR_NO;
	}
	r->n = m.n;
	r->model = mr_malloc(m.n * sizeof(*r->model));
	memset(r->model, 0, m.n * sizeof(*r->model));
	for (i = 0; i < m.n; i++) {
		memcpy(r->model[i].id, m.entry[i].id, sizeof(m.entry[i].id));
		r->model[i].record = mr_json_null();
	}
	mr_manifest_free(&m);
	if (r->n == 0) {
		warnx("%s: names no model", r->manifest);
		return MR_NO;
	}
	for (i = 0; i < r->n; i++)
		status = mr_worse(status, check_model(r, &r->model[i]));
	/* of one that has no compiler it was said */
	return status == MR_OK ? check_toolchain(r) : status;
}

/* ns-rename puts the sets into r->tmp under their new names; a status. */
static int
rename_into(const struct release *r)
{
	const char *argv[20];
	size_t n = 0;
	int in, status;

	argv[n++] = "ns-rename";
	argv[n++] = "-s";
	argv[n++] = r->suffix;
	argv[n++] = "-v";
	argv[n++] = r->version;
	argv[n++] = "-k";
	argv[n++] = r->map;
	if (r->table != NULL) {
		argv[n++] = "-t";
		argv[n++] = r->table;
	}
	argv[n++] = "-C";
	argv[n++] = r->ready;
	argv[n++] = "-o";
	argv[n++] = r->tmp;
	argv[n] = NULL;
	in = open(r->manifest, O_RDONLY | O_CLOEXEC);
	if (in == -1) {
		warn("%s", r->manifest);
		return MR_UNFIT;
	}
	status = mr_run(argv, in, -1, -1, 0);
	close(in);
	if (status == -1)
		warn("ns-rename");
	return status == MR_OK || status == MR_NO ? status : MR_UNFIT;
}

/* Gives the models and their files the ids of the map. */
static int
take_ids(struct release *r, struct mr_err *e)
{
	struct mr_json map;
	struct model *m;
	const char *new;
	char *name;
	size_t i, k;
	int rc = 0;

	if (mr_json_load(&map, r->map, e) == -1)
		return -1;
	for (i = 0; rc == 0 && i < r->n; i++) {
		m = &r->model[i];
		new = mr_json_str(map, m->id, m->id);
		if (!mr_id_ok(new))
			rc = mr_fail(e, "%s: %s: its new id is none", r->map,
			    m->id);
		else
			memcpy(m->new, new, strlen(new) + 1);
		for (k = 0; k < m->npieces; k++) {
			name = mr_fmt("%s%s", m->new, m->piece[k].name);
			free(m->piece[k].name);
			m->piece[k].name = name;
		}
	}
	mr_json_free(map);
	return rc;
}

/* The id map goes where it is kept, now that the release is there. */
static int
keep_map(const struct release *r, struct mr_err *e)
{
	struct mr_out out;
	char *text;
	size_t n;
	int rc;

	text = mr_slurp(r->map, MR_JSON_MAX, &n, e);
	if (text == NULL)
		return -1;
	rc = mr_out_open(&out, r->idmap, e);
	if (rc == 0 && mr_write(out.fd, text, n) == -1) {
		rc = mr_fail(e, "%s: write: %s", out.tmp, strerror(errno));
		mr_out_abort(&out);
	}
	free(text);
	if (rc == 0)
		rc = mr_out_commit(&out, e);
	unlink(r->map);
	return rc;
}

/* Is the backend one of a car's: its GPU, or one on its USB port? */
static int
of_a_car(struct mr_json record)
{
	const char *b;

	b = mr_json_str(record, "backend", "");
	return strncmp(mr_json_str(record, "device", ""), "local", 5) != 0 &&
	    (strncmp(b, "QCOM", 4) == 0 || strncmp(b, "USB+AMD", 7) == 0);
}

/* what a person wants to know of the release */
static void
tell(const struct release *r)
{
	size_t i, parts = 0, tests = 0;
	uint64_t bytes = 0;

	for (i = 0; i < r->n; i++) {
		bytes += r->model[i].size;
		parts += r->model[i].parts != 0;
		tests += !of_a_car(r->model[i].record);
	}
	printf("%s: models: %zu, in parts: %zu, bytes: %llu, tinygrad %s, "
	    "toolchain %.16s\n", r->final, r->n, parts,
	    (unsigned long long)bytes,
	    mr_json_str(r->model[0].record, "tinygrad", "?"),
	    mr_json_str(r->model[0].record, "toolchain", ""));
	if (tests == 0)
		return;
	printf("%s: for tests, not compiled for a car:", r->final);
	for (i = 0; i < r->n && tests < r->n; i++)
		if (!of_a_car(r->model[i].record))
			printf(" %s", r->model[i].id);
	puts(tests == r->n ? " all" : "");
}

/* Makes the release; a status. */
static int
build(struct release *r)
{
	struct mr_err e;
	int status;

	if (swap_begin(r, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	status = rename_into(r);
	if (status == MR_OK && take_ids(r, &e) == -1) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	if (status == MR_OK)
		status = hash_all(r);
	if (status == MR_OK && (sums_write(r, &e) == -1 ||
	    swap_end(r, &e) == -1 || keep_map(r, &e) == -1)) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	if (status != MR_OK) {
		swap_remove(r->tmp, &e);
		unlink(r->map);
	}
	return status;
}

static void
forget(struct release *r)
{
	size_t i, k;

	for (i = 0; i < r->n; i++) {
		for (k = 0; k < r->model[i].npieces; k++)
			free(r->model[i].piece[k].name);
		free(r->model[i].piece);
		free(r->model[i].fault);
		mr_json_free(r->model[i].record);
	}
	free(r->model);
	free(r->final);
	free(r->tmp);
	free(r->old);
	free(r->map);
}

static int
run(struct release *r)
{
	int status;

	r->final = mr_fmt("%s/%s", r->folder, r->version);
	r->tmp = mr_fmt("%s/.%s.tmp", r->folder, r->version);
	r->old = mr_fmt("%s/.%s.old", r->folder, r->version);
	r->map = mr_fmt("%s/.%s.ids", r->folder, r->version);
	status = load(r);
	if (status == MR_OK)
		status = build(r);
	if (status == MR_OK)
		tell(r);
	forget(r);
	return status;
}

int
main(int argc, char *argv[])
{
	static struct release r = { .ready = "ready-for-resources",
	    .folder = "release", .limit = 104857600 };
	int c;

	while ((c = getopt(argc, argv, "C:i:k:l:o:r:s:t:v:hV")) != -1)
		switch (c) {
		case 'C':
			r.ready = optarg;
			break;
		case 'i':
			r.identity = optarg;
			break;
		case 'k':
			r.idmap = optarg;
			break;
		case 'l':
			if (mr_number(optarg, UINT64_MAX, &r.limit) == -1)
				errx(MR_UNFIT, "-l %s: wanted a number of "
				    "bytes", optarg);
			break;
		case 'o':
			r.folder = optarg;
			break;
		case 'r':
			r.results = optarg;
			break;
		case 's':
			r.suffix = optarg;
			break;
		case 't':
			r.table = optarg;
			break;
		case 'v':
			r.version = optarg;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc - optind != 1 || r.results == NULL || r.suffix == NULL ||
	    r.version == NULL || r.idmap == NULL)
		return usage(stderr);
	if (*r.version == '\0' || !mr_version_ok(r.version))
		errx(MR_UNFIT, "-v %s: wanted v and 1 to 4 digits", r.version);
	r.manifest = argv[optind];
	return mr_finish(run(&r));
}
