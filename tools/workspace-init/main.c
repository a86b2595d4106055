/* Marks a folder as a workspace and adopts what a Python pipeline left. */
#include <sys/stat.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workspace-init.h"

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
"# local: this machine's CPU; else devices as ssh names them, with blanks\n"
"# between them\n"
"#DEVICES ?= local\n"
"# addresses that may be connected to; addresses and host keys (SHA256:...)\n"
"# that never are\n"
"#ALLOWED_DEVICES ?= 192.168.3.109\n"
"#DENY_DEVICES ?= 192.168.3.110\n"
"# openpilot's folder on a device; an ssh_config other than the user's\n"
"#DEVICE_ROOT ?= /data/openpilot\n"
"#SSH_CONFIG ?=\n"
"# tries after a dropped link, and the seconds before the first of them\n"
"#RETRIES ?= 3\n"
"#RETRY_SECONDS ?= 2\n"
"# the longest wait for other compiles, compile, and silence of a device\n"
"#WAIT_SECONDS ?= 9000\n"
"#COMPILE_SECONDS ?= 7200\n"
"#SILENT_SECONDS ?= 60\n"
"# 1: a device keeps inputs and outputs\n"
"#KEEP_DEVICE_FILES ?=\n"
"# above this many bytes an artifact is cut into parts of PART_SIZE bytes\n"
"#SPLIT_LIMIT ?= 100000000\n"
"#PART_SIZE ?= 99614720\n"
"# Git LFS servers asked after the commit's own, and the hosts that may be\n"
"# asked and may be given credentials\n"
"#LFS_ENDPOINTS ?= https://huggingface.co/commaai/openpilot-lfs.git/info/lfs "
"https://gitlab.com/commaai/openpilot-lfs.git/info/lfs\n"
"#LFS_HOSTS ?= gitlab.com huggingface.co github.com\n"
"# versions of the manifest and of the release; what a release puts behind\n"
"# each id\n"
"#MANIFEST_VERSION ?= v22\n"
"#RELEASE_VERSION ?= v23\n"
"#SUFFIX ?= 3\n"
"# 1: manifests have the size, digest and format of each artifact\n"
"#WITH_DIGESTS ?=\n"
"# 1: manifests keep models that are not built\n"
"#WITH_UNBUILT ?=\n"
"# the largest file that the host of the artifacts takes, in bytes\n"
"#HOST_LIMIT ?= 104857600\n"
"# clones of the repository that devices download from, with blanks between\n"
"#RESOURCES ?=\n"
"# models whose published files may be replaced, and that may be gone\n"
"#ALLOW_REPLACE ?=\n"
"#ALLOW_MISSING ?=\n"
"# pushes a minute to one repository; 1: publish shows what it would do\n"
"#PUSHES_PER_MINUTE ?= 6\n"
"#DRY_RUN ?=\n"
"# 1: `all' takes the external-GPU models too\n"
"#GPU ?=\n"
"# a command that gets each run's summary on its standard input\n"
"#NOTIFY ?=\n";

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

/* The absolute name of a folder; ends where make or sh would misread it. */
static char *
folder(const char *path)
{
	char *real;

	real = realpath(path, NULL);
	if (real == NULL)
		err(MR_UNFIT, "%s", path);
	if (strpbrk(real, "'$#\\\n") != NULL)
		errx(MR_UNFIT, "%s: a folder with ', $, #, a backslash or a "
		    "newline in its name cannot be named by a Makefile", real);
	return real;
}

/* the workspace's own Makefile: every target is the project's; a goal is one
 * word of the shell, whatever is in it */
static void
put_makefile(const char *root)
{
	struct mr_err e;
	size_t n;
	char *text, *real, *old;

	free(folder("."));
	real = folder(root);
	text = mr_fmt("# Made by make init: the targets of this workspace.\n"
	    "ROOT := %s\n"
	    ".DEFAULT_GOAL := status\n"
	    "status:\n"
	    "	+@exec $(MAKE) --no-print-directory -C '$(ROOT)' "
	    "WORKSPACE='$(CURDIR)' $(foreach g,$(or $(MAKECMDGOALS),status),"
	    "'$(subst ','\\'',$g)')\n"
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

/* the compiler's share of the keys, for -t */
static void
load_device(struct mr_key *device, const char *path)
{
	struct mr_json identity;
	struct mr_err e;

	if (path == NULL)
		errx(MR_UNFIT, "-t: no identity was named with -i");
	if (mr_json_load(&identity, path, &e) == -1)
		errx(MR_UNFIT, "-t: the compiler is unknown: %s", e.text);
	if (mr_key_device(device, identity) == -1)
		errx(MR_UNFIT, "-t: %s: names no toolchain", path);
	mr_json_free(identity);
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
	const char *identity = NULL, *results = NULL;
	struct mr_catalog cat;
	struct mr_key device;
	struct mr_err e;
	int c, status, trusts = 0;

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
			identity = optarg;
			break;
		case 't':
			trusts = 1;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc - optind != 1 || (results != NULL && *results == '\0'))
		return usage(stderr);
	if (results == NULL)
		results = "results";
	if (mr_catalog_load(&cat, maps, manifests, 1, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	if (trusts)
		load_device(&device, identity);
	if (!in_root(argv[optind]))
		put_makefile(argv[optind]);
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (mr_mkdirs(folders[i], &e) == -1)
			errx(MR_UNFIT, "%s", e.text);
	put_new("config.mk", config);
	status = adopt(results);
	adopt_sources(&cat, results);
	if (trusts) {
		trust(&cat, &device, results);
		mr_key_free(&device);
	}
	mr_catalog_free(&cat);
	put_new(".model-rebuild", "a workspace of model-rebuild(7)\n");
	return mr_finish(status);
}
