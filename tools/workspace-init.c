/* Marks a folder as a workspace and adopts what a Python pipeline left. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

static const char suffix[] = "_driving_tinygrad.pkl";

/* config.mk as it is written: every setting with its default, as a remark */
static const char config[] =
"# Settings of this workspace. Remove a # and change the value; `?=' lets the\n"
"# environment win, and the command line always wins (make all GPU=1).\n"
"# model-rebuild(7) says more of each.\n"
"\n"
"# the clone of openpilot; the default is a bare store made in the workspace\n"
"#OPENPILOT ?= openpilot.git\n"
"# where missing commits are fetched from\n"
"#REMOTE_URL ?= https://github.com/commaai/openpilot.git\n"
"# source maps, separated by blanks; empty: those of catalog/\n"
"#SOURCE_MAPS ?=\n"
"# manifests that give versions: the base first, then what it lacks\n"
"#BASE_MANIFEST ?= $(ROOT)/catalog/model_names_v21.json\n"
"#EXTRA_MANIFEST ?= $(ROOT)/catalog/model_names_extra.json\n"
"# local: this machine's CPU\n"
"#DEVICES ?= local\n"
"# above this many bytes an artifact is cut into parts of PART_SIZE bytes\n"
"#SPLIT_LIMIT ?= 100000000\n"
"#PART_SIZE ?= 99614720\n"
"# Git LFS servers asked after the commit's own, and the hosts that may be\n"
"# asked and may be given credentials\n"
"#LFS_ENDPOINTS ?= https://huggingface.co/commaai/openpilot-lfs.git/info/lfs "
"https://gitlab.com/commaai/openpilot-lfs.git/info/lfs\n"
"#LFS_HOSTS ?= gitlab.com huggingface.co github.com\n"
"# 1: `all' takes the external-GPU models too\n"
"#GPU ?=\n"
"# a command that gets each run's summary on its standard input\n"
"#NOTIFY ?=\n";

static int trust;	/* -t: old artifacts count as made by today's compiler */
static const char *results, *identity_path;

static int
usage(FILE *f)
{
	fputs("usage: workspace-init [-thV] [-b MANIFEST] ... [-m MAP] ... "
	    "[-r RESULTS]\n"
	    "                      [-i IDENTITY] ROOT\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* writes TEXT to a new file; leaves an existing one alone */
static void
put_new(const char *path, const char *text)
{
	struct mr_out out;
	struct mr_err e;

	if (access(path, F_OK) == 0)
		return;
	if (mr_out_open(&out, path, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	if (mr_write(out.fd, text, strlen(text)) == -1)
		err(MR_UNFIT, "%s", path);
	if (mr_out_commit(&out, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	printf("%s: written\n", path);
}

/* is the working directory ROOT itself? */
static int
in_root(const char *root)
{
	struct stat a, b;

	return stat(".", &a) == 0 && stat(root, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* the workspace's own Makefile: every target is the project's */
static void
put_makefile(const char *root)
{
	struct mr_err e;
	size_t n;
	char *text, *real, *old;

	real = realpath(root, NULL);
	if (real == NULL)
		err(MR_UNFIT, "%s", root);
	if (strpbrk(real, "'$#\n") != NULL)
		errx(MR_UNFIT, "%s: a folder with ', $, # or a newline in its "
		    "name cannot be named by a Makefile", real);
	text = mr_fmt("# Made by make init: the targets of this workspace.\n"
	    "ROOT := %s\n"
	    ".DEFAULT_GOAL := status\n"
	    "status:\n"
	    "	+@exec $(MAKE) -C '$(ROOT)' WORKSPACE='$(CURDIR)' "
	    "$(or $(MAKECMDGOALS),status)\n"
	    "ifneq ($(filter-out status,$(MAKECMDGOALS)),)\n"
	    ".PHONY: $(MAKECMDGOALS)\n"
	    "$(filter-out status,$(MAKECMDGOALS)): status ; @:\n"
	    "endif\n"
	    ".PHONY: status\n", real);
	free(real);
	/* made anew when the project has moved; a foreign one is kept */
	old = mr_slurp("Makefile", MR_BUF, &n, &e);
	if (old != NULL && strncmp(old, text, 20) == 0 &&
	    strcmp(old, text) != 0)
		unlink("Makefile");
	free(old);
	put_new("Makefile", text);
	free(text);
}

/* is every staged file of a record there with its digest? sets the paths */
static int
staged_hold(const char *id, struct mr_json *rec)
{
	struct mr_json files, f, old;
	struct mr_err e;
	const char *named;
	char hex[MR_HEX], *component, *path;
	uint64_t size;
	size_t i, n;
	int holds;

	old = mr_json_get(*rec, "files");
	files = mr_json_array();
	holds = mr_json_len(old) > 0;
	for (i = 0; holds && i < mr_json_len(old); i++) {
		f = mr_json_copy(mr_json_at(old, i));
		named = mr_json_str(f, "component", "");
		n = strlen(named);	/* older records end it in .onnx */
		if (n > 5 && strcmp(named + n - 5, ".onnx") == 0)
			n -= 5;
		component = mr_fmt("%.*s", (int)n, named);
		path = mr_fmt("onnx/%s/%s_%s.onnx", id, id, component);
		holds = mr_component_ok(component) &&
		    mr_sha256_file(path, hex, &size, &e) == 0 &&
		    strcmp(hex, mr_json_str(f, "sha256", "")) == 0;
		mr_json_set_str(&f, "component", component);
		mr_json_set_str(&f, "path", path);
		mr_json_push(&files, f);
		free(component);
		free(path);
	}
	mr_json_set(rec, "files", files);
	return holds;
}

/* gives a source record of the Python pipeline its key; 1: adopted */
static int
adopt_source(const char *id)
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
		mr_key_fetch(&k, mr_json_str(rec, "input_format", ""),
		    mr_json_bool(rec, "uses_external_gpu", 0),
		    mr_json_str(rec, "ref", ""));
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

/* -t: the key that today's compiler would give the artifact */
static int
trust_key(const struct mr_catalog *c, const char *id, struct mr_json *rec)
{
	const struct mr_model *m;
	struct mr_json source, identity;
	struct mr_key k, device;
	struct mr_err e;
	char *path;

	m = mr_catalog_find(c, id);
	if (m == NULL || m->version == NULL)
		return 0;
	path = mr_fmt("%s/%s_source.json", results, id);
	if (mr_json_load(&source, path, &e) == -1) {
		free(path);
		return 0;
	}
	free(path);
	if (identity_path == NULL ||
	    mr_json_load(&identity, identity_path, &e) == -1)
		errx(MR_UNFIT, "TRUST: the compiler is unknown: %s",
		    identity_path ? e.text : "no identity was named");
	if (mr_key_device(&device, identity) == -1)
		errx(MR_UNFIT, "TRUST: %s: names no toolchain", identity_path);
	mr_key_compile(&k, m->format, m->version, m->gpu, source, &device);
	mr_key_record(&k, rec, "");
	mr_key_free(&k);
	mr_key_free(&device);
	mr_json_free(source);
	mr_json_free(identity);
	return 1;
}

/* one artifact of the Python pipeline: checks its digest, renames it */
static int
adopt_artifact(const struct mr_catalog *c, const char *name)
{
	struct mr_json rec;
	struct mr_err e;
	char hex[MR_HEX], *id, *old, *new, *path;
	const char *want;
	uint64_t size;
	int status = MR_OK;

	id = mr_fmt("%.*s", (int)(strlen(name) - strlen(suffix)), name);
	old = mr_fmt("compiled/%s", name);
	new = mr_fmt("compiled/%s.pkl", id);
	path = mr_fmt("%s/%s_artifact.json", results, id);
	if (!mr_id_ok(id)) {
		warnx("%s: its name holds no model id: left as it is", old);
		status = MR_NO;
	} else if (access(new, F_OK) == 0) {
		warnx("%s: %s is there already: remove one", old, new);
		status = MR_NO;
	} else if (mr_json_load(&rec, path, &e) == -1) {
		warnx("%s: no record to check it against (%s): left as it is",
		    old, e.text);
		status = MR_NO;
	} else {
		want = mr_json_str(rec, "sha256", "");
		if (mr_sha256_file(old, hex, &size, &e) == -1)
			errx(MR_UNFIT, "%s", e.text);
		if (strcmp(hex, want) != 0) {
			warnx("%s: sha256 is %s, its record says %s: left as "
			    "it is", old, hex, want);
			status = MR_NO;
		} else {
			mr_json_set_str(&rec, "path", new);
			mr_json_set_int(&rec, "size", size);
			adopt_source(id);
			printf("%s: adopted%s\n", new,
			    trust && trust_key(c, id, &rec) ?
			    ", trusted as made by today's compiler" :
			    ", made by an unknown compiler: stale");
			if (rename(old, new) == -1)
				err(MR_UNFIT, "%s", new);
			if (mr_sync_dir(new) == -1)
				err(MR_UNFIT, "compiled");
			if (mr_json_save(rec, path, &e) == -1)
				errx(MR_UNFIT, "%s", e.text);
		}
		mr_json_free(rec);
	}
	free(id);
	free(old);
	free(new);
	free(path);
	return status;
}

/* adopts every artifact that still has the older name */
static int
adopt(const struct mr_catalog *c)
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
		if (mr_litter(d->d_name) || n <= end ||
		    strcmp(d->d_name + n - end, suffix) != 0)
			continue;
		status = mr_worse(status, adopt_artifact(c, d->d_name));
	}
	closedir(dir);
	return status;
}

/* adopts the sources whose models have no artifact yet */
static void
adopt_sources(const struct mr_catalog *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (adopt_source(c->models[i].id))
			printf("onnx/%s: adopted\n", c->models[i].id);
}

int
main(int argc, char *argv[])
{
	static const char *const folders[] = {
		"onnx", "compiled", "driver-monitoring", "ready-for-resources",
		"logs", "results", "manifests", "source-maps", ".state"
	};
	char *maps[64] = { NULL }, *manifests[64] = { NULL };
	size_t i, nmaps = 0, nmanifests = 0;
	struct mr_catalog cat;
	struct mr_err e;
	int c, status;

	while ((c = getopt(argc, argv, "b:m:r:i:thV")) != -1)
		switch (c) {
		case 'b':
		case 'm':
			if (nmaps > 60 || nmanifests > 60)
				errx(MR_UNFIT, "more than 60 files");
			if (c == 'b')
				manifests[nmanifests++] = optarg;
			else
				maps[nmaps++] = optarg;
			break;
		case 'r':
			results = optarg;
			break;
		case 'i':
			identity_path = optarg;
			break;
		case 't':
			trust = 1;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc - optind != 1)
		return usage(stderr);
	if (results == NULL)
		results = "results";
	if (mr_catalog_load(&cat, maps, manifests, 1, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (mr_mkdirs(folders[i], &e) == -1)
			errx(MR_UNFIT, "%s", e.text);
	put_new("config.mk", config);
	if (!in_root(argv[optind]))
		put_makefile(argv[optind]);
	status = adopt(&cat);
	adopt_sources(&cat);
	mr_catalog_free(&cat);
	put_new(".model-rebuild", "a workspace of model-rebuild(7)\n");
	return mr_finish(status);
}
