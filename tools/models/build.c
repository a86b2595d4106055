/* One model, from its staged files to its artifact. */
#include <sys/types.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

enum {
	HEADROOM = 16 << 20,	/* bytes of an artifact over its weights */
	ARGS = 32
};

/* the compile script's option for the Ith source */
static const char *
source_option(const struct plan *p, size_t i)
{
	switch (p->use[i]) {
	case SUPERCOMBO:
		return "--supercombo-onnx";
	case VISION:
		return "--vision-onnx";
	case OFF_POLICY:
		return "--off-policy-onnx";
	default:	/* alone it is the policy, whatever its file's name */
		return p->n == 3 ? "--on-policy-onnx" : "--policy-onnx";
	}
}

static int
compile(const struct job *j, const struct plan *p, const struct place *place,
    const char *artifact)
{
	const char *argv[ARGS];
	char *script, *what;
	size_t n = 0, i;
	int status;

	script = mr_fmt("%s/compile_modeld.py", place->scripts);
	argv[n++] = place->python;
	argv[n++] = script;
	argv[n++] = "--model-type";
	argv[n++] = p->type;
	argv[n++] = "--model-size";
	argv[n++] = "512x256";
	argv[n++] = "--camera-resolutions";
	argv[n++] = "1928x1208";
	argv[n++] = "1344x760";
	argv[n++] = "--output";
	argv[n++] = artifact;
	argv[n++] = "--frame-skip";
	argv[n++] = p->skip == 1 ? "1" : "4";
	argv[n++] = "--image-history-pipeline";
	argv[n++] = j->pipeline;
	for (i = 0; i < p->n; i++) {
		argv[n++] = source_option(p, i);
		argv[n++] = p->files->file[p->use[i]];
	}
	if (p->version[0] != '\0') {
		argv[n++] = "--behavior-version";
		argv[n++] = p->version;
	}
	argv[n] = NULL;
	what = mr_fmt("%s: the compiler", j->id);
	status = backend_run(argv, place, p->supercombo, what);
	backend_end();
	free(what);
	free(script);
	return status;
}

/* ---- the whole ---- */

/* makes the output folder and its room; OUT becomes absolute */
static int
prepare(const struct job *j, const struct plan *p, char **out,
    struct mr_err *e)
{
	uint64_t room, need = p->bytes + HEADROOM;

	if (mr_mkdirs(j->out, e) == -1)
		return -1;
	if ((*out = realpath(j->out, NULL)) == NULL)
		return mr_fail(e, "%s: %s", j->out, strerror(errno));
	if (mr_space(*out, &room) == 0 && room < need)
		return mr_fail(e, "%s: %llu MiB are free, wanted about %llu",
		    *out, (unsigned long long)(room >> 20),
		    (unsigned long long)(need >> 20));
	return outputs_clear(*out, j->id, e);
}

static int
build_planned(const struct job *j, const struct plan *p,
    const struct place *place)
{
	struct mr_err e;
	char *out = NULL, *artifact;
	uint64_t size = 0;
	int status;

	if (prepare(j, p, &out, &e) == -1) {
		warnx("%s", e.text);
		free(out);
		return MR_UNFIT;
	}
	artifact = mr_fmt("%s/%s_driving_tinygrad.pkl", out, j->id);
	printf("Compiling %s (%s, %s) from %s -> %s\n", j->id,
	    p->supercombo ? "supercombo" : "split", p->version[0] != '\0' ?
	    p->version : "no version", j->in, out);
	if (place->starpilot && chdir(place->root) == -1) {
		warn("%s", place->root);
		status = MR_UNFIT;
	} else
		status = compile(j, p, place, artifact);
	if (status == MR_OK && output_check(artifact, &size, &e) == -1) {
		warnx("%s", e.text);
		status = MR_NO;
	}
	if (status == MR_OK) {
		printf("  saved %s_driving_tinygrad.pkl (%llu bytes)\n",
		    j->id, (unsigned long long)size);
		if (!j->whole && size > SPLIT_LIMIT) {
			fflush(stdout);
			status = split(place->bin, artifact, out, j->part, 0);
		}
	}
	free(artifact);
	free(out);
	return status;
}

int
build(const struct job *j, const char *argv0)
{
	struct staging s;
	const struct staged *files;
	struct place place;
	struct plan p;
	struct mr_err e;
	char *in;
	int status = MR_NO;

	if ((in = realpath(j->in, NULL)) == NULL) {
		warn("%s", j->in);
		return MR_NO;
	}
	p.version = NULL;
	if (staging_read(&s, in, j->id, &e) == -1) {
		warnx("%s", e.text);
		free(in);
		return MR_NO;
	}
	files = staging_find(&s, j->id, in, &e);
	if (files == NULL || plan_make(&p, j, files, &e) == -1) {
		warnx("%s", e.text);
	} else if (place_find(&place, argv0, &e) == -1) {
		warnx("%s", e.text);
		place_free(&place);
		status = MR_UNFIT;
	} else {
		status = build_planned(j, &p, &place);
		place_free(&place);
	}
	free(p.version);
	staging_free(&s);
	free(in);
	return status;
}
