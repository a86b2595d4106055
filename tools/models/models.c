/* Compiles staged ONNX models: the device compiler's command line. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models.h"

struct options {
	struct job	 job;
	const char	*dynamic;	/* the NAME of --NAME */
	const char	*artifact;	/* of --split-artifact */
	const char	*validate;	/* an artifact to be tried */
	int		 list, identity;
};

static int
usage(FILE *f)
{
	fputs("usage: models --model ID | --ID [--input-dir DIR] "
	    "[--output-dir DIR]\n"
	    "              [--input-format auto|split|supercombo] "
	    "[--version vN]\n"
	    "              [--image-history-pipeline policy|warp] "
	    "[--no-split]\n"
	    "              [--chunk-size-mib N]\n"
	    "       models --list [--input-dir DIR]\n"
	    "       models --split-artifact FILE [--output-dir DIR] "
	    "[--chunk-size-mib N]\n"
	    "       models --validate FILE --model ID [--version vN] "
	    "[--output-dir DIR]\n"
	    "       models --identity [--image-history-pipeline "
	    "policy|warp]\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* ---- the command line ---- */

/* the value of --NAME VALUE or --NAME=VALUE at argv[*I]; 1 if it is there,
 * 0 for another word, -1 if the value is missing */
static int
valued(char *const argv[], int *i, const char *name, const char **value)
{
	size_t n;

	n = strlen(name);
	if (strncmp(argv[*i], name, n) != 0)
		return 0;
	if (argv[*i][n] == '=') {
		*value = argv[*i] + n + 1;
		return 1;
	}
	if (argv[*i][n] != '\0')
		return 0;
	if (argv[*i + 1] == NULL) {
		warnx("%s: wanted a value", name);
		return -1;
	}
	*value = argv[++*i];
	return 1;
}

/* well said, but not offered: no usage line would help */
static int
refused(const char *what)
{
	warnx("%s is not part of this version", what);
	return -2;
}

/* a word that stands alone: 1 taken, 0 another word, -2 refused */
static int
flag(struct options *o, const char *word)
{
	if (strcmp(word, "--list") == 0)
		o->list = 1;
	else if (strcmp(word, "--identity") == 0)
		o->identity = 1;
	else if (strcmp(word, "--no-split") == 0)
		o->job.whole = 1;
	else if (strcmp(word, "--gpu") == 0 ||
	    strcmp(word, "--external-gpu") == 0)
		return refused("a compile for the external GPU");
	else if (strcmp(word, "--dm") == 0)
		return refused("the driver monitoring set");
	else if (strcmp(word, "--force") != 0 &&	/* always so */
	    strcmp(word, "--no-install") != 0)		/* never done */
		return 0;
	return 1;
}

static int
option(struct options *o, char *const argv[], int *i, const char **chunk)
{
	const struct {
		const char	*name;
		const char	**value;
	} options[] = {
		{ "--model", &o->job.id },
		{ "--input-dir", &o->job.in },
		{ "--output-dir", &o->job.out },
		{ "--input-format", &o->job.format },
		{ "--version", &o->job.version },
		{ "--image-history-pipeline", &o->job.pipeline },
		{ "--split-artifact", &o->artifact },
		{ "--validate", &o->validate },
		{ "--chunk-size-mib", chunk },
	};
	size_t k;
	int rc;

	for (k = 0; k < sizeof(options) / sizeof(options[0]); k++)
		if ((rc = valued(argv, i, options[k].name,
		    options[k].value)) != 0)
			return rc;
	return flag(o, argv[*i]);
}

static int
parse(struct options *o, char *const argv[])
{
	const char *chunk = "95";
	uint64_t mib;
	int i, rc;

	for (i = 1; argv[i] != NULL; i++) {
		if ((rc = option(o, argv, &i, &chunk)) < 0)
			return rc;
		if (rc == 1)
			continue;
		if (strncmp(argv[i], "--", 2) != 0) {
			warnx("%s: unexpected, wanted only flags", argv[i]);
			return -1;
		}
		if (o->dynamic != NULL) {
			warnx("--%s and %s: wanted one model", o->dynamic,
			    argv[i]);
			return -1;
		}
		o->dynamic = argv[i] + 2;
	}
	if (mr_number(chunk, 99, &mib) == -1 || mib < 1) {
		warnx("--chunk-size-mib: %s, wanted 1 to 99", chunk);
		return -1;
	}
	o->job.part = mib << 20;
	return 0;
}

static int
one_of(const char *name, const char *value, const char *a, const char *b,
    const char *c)
{
	if (strcmp(value, a) == 0 || strcmp(value, b) == 0 ||
	    (c != NULL && strcmp(value, c) == 0))
		return 0;
	warnx("%s: %s, wanted %s, %s%s%s", name, value, a, b,
	    c != NULL ? ", " : "", c != NULL ? c : "");
	return -1;
}

/* every name and version is checked here, before anything uses it */
static int
check(struct options *o)
{
	static const char *const dm[] = {
		"dm", "dmonitoring", "dmonitoring_model"
	};
	size_t i;

	if (o->job.id != NULL && o->dynamic != NULL &&
	    strcmp(o->job.id, o->dynamic) != 0) {
		warnx("--model %s and --%s: wanted one model", o->job.id,
		    o->dynamic);
		return -1;
	}
	if (o->job.id == NULL)
		o->job.id = o->dynamic;
	if (o->job.id != NULL && !mr_id_ok(o->job.id)) {
		warnx("model id \"%s\": wanted a letter or digit, then "
		    "letters, digits, '.', '_', '-', at most %d in all",
		    o->job.id, MR_ID_MAX);
		return -1;
	}
	if (!mr_version_ok(o->job.version)) {
		warnx("--version: %s, wanted v and a number of at most four "
		    "digits", o->job.version);
		return -1;
	}
	if (one_of("--input-format", o->job.format, "auto", "split",
	    "supercombo") == -1 || one_of("--image-history-pipeline",
	    o->job.pipeline, "policy", "warp", NULL) == -1)
		return -1;
	for (i = 0; o->job.id != NULL && i < sizeof(dm) / sizeof(dm[0]); i++)
		if (strcasecmp(o->job.id, dm[i]) == 0)
			return refused("the driver monitoring set");
	if (o->job.id != NULL && strncmp(o->job.id, "local-", 6) == 0)
		return refused("a local- model, installed on this device,");
	if (o->job.id != NULL && (o->artifact != NULL || o->identity)) {
		warnx("%s: wanted no model beside %s", o->job.id,
		    o->identity ? "--identity" : "--split-artifact");
		return -1;
	}
	return 0;
}

/* ---- what is not a compile ---- */

/* prints each model that is staged in DIR, and its files */
static int
list(const char *dir)
{
	struct staging s;
	struct mr_err e;
	struct stat st;
	size_t i, c;

	if (stat(dir, &st) == -1 && errno == ENOENT) {
		printf("No staged models found in %s\n", dir);
		return MR_OK;
	}
	if (staging_read(&s, dir, NULL, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	for (i = 0; i < s.n; i++) {
		printf("%s\n", s.model[i].id != NULL ? s.model[i].id :
		    "(named for no model)");
		for (c = 0; c < COMPONENTS; c++)
			if (s.model[i].file[c] != NULL)
				printf("  %s: %s\n",
				    component_name((enum component)c),
				    s.model[i].file[c]);
	}
	if (s.n == 0)
		printf("No staged models found in %s\n", dir);
	staging_free(&s);
	return MR_OK;
}

static int
split_artifact(const struct options *o, const char *argv0)
{
	struct stat st;
	struct mr_err e;
	char *bin;
	int status;

	if (stat(o->artifact, &st) == -1) {
		warn("%s", o->artifact);
		return MR_NO;
	}
	if (mr_mkdirs(o->job.out, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	if ((bin = mr_home_bin(argv0)) == NULL) {
		warnx("%s: its own folder is not known", argv0);
		return MR_UNFIT;
	}
	status = split(bin, o->artifact, o->job.out, o->job.part, 1);
	free(bin);
	return status;
}

static int
print_identity(const struct options *o, const char *argv0)
{
	struct place p;
	struct mr_err e;
	int status = MR_OK;

	if (place_find(&p, argv0, &e) == -1 ||
	    identity(&p, o->job.pipeline, &e) == -1) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	place_free(&p);
	return status;
}

static int
act(const struct options *o, const char *argv0)
{
	if (o->identity)
		return print_identity(o, argv0);
	if (o->artifact != NULL)
		return split_artifact(o, argv0);
	if (o->list)
		return list(o->job.in);
	if (o->job.id == NULL) {
		warnx("wanted a model, for example --sc2; --list shows what "
		    "is staged");
		return MR_UNFIT;
	}
	if (o->validate != NULL)
		return validate(&o->job, o->validate, argv0);
	return build(&o->job, argv0);
}

int
main(int argc, char *argv[])
{
	struct options o;
	char *root, *in, *out;
	int rc, status;

	(void)argc;
	if (argv[1] != NULL && strcmp(argv[1], "-h") == 0)
		return usage(stdout);
	if (argv[1] != NULL && strcmp(argv[1], "-V") == 0)
		return mr_version();
	root = place_root();
	in = mr_fmt("%s%suncompiledmodels", root != NULL ? root : "",
	    root != NULL ? "/" : "");
	out = mr_fmt("%s%scompiledmodels", root != NULL ? root : "",
	    root != NULL ? "/" : "");
	memset(&o, 0, sizeof(o));
	o.job.in = in;
	o.job.out = out;
	o.job.version = "";
	o.job.format = "auto";
	o.job.pipeline = "policy";
	if ((rc = parse(&o, argv)) == 0 && (rc = check(&o)) == 0)
		status = act(&o, argv[0]);
	else
		status = rc == -1 ? usage(stderr) : MR_UNFIT;
	free(root);
	free(in);
	free(out);
	return mr_finish(status);
}
