/* One model, from its staged files to its artifact. */
#include <sys/types.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

extern char **environ;

enum {
	HEADROOM = 16 << 20,	/* bytes of an artifact over its weights */
	ARGS = 32
};

static volatile sig_atomic_t child;	/* the backend's pid while it runs */
static volatile sig_atomic_t caught;	/* the signal that ended us */

static void
pass_on(int sig)
{
	caught = sig;
	if (child > 0)
		kill((pid_t)child, SIGTERM);
}

static void
catch(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction sa, was;
	size_t i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = pass_on;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaction(signals[i], NULL, &was);
		if (was.sa_handler != SIG_IGN)	/* nohup */
			sigaction(signals[i], &sa, NULL);
	}
}

/* one "NAME=VALUE" per pair of A and B; the caller frees each and all */
static char **
environment(const struct pair *a, const struct pair *b)
{
	char **v;
	size_t i, n = 0;

	for (i = 0; a[i].name != NULL; i++)
		n++;
	for (i = 0; b[i].name != NULL; i++)
		n++;
	v = mr_malloc((n + 1) * sizeof(*v));
	n = 0;
	for (i = 0; a[i].name != NULL; i++)
		v[n++] = mr_fmt("%s=%s", a[i].name, a[i].value);
	for (i = 0; b[i].name != NULL; i++)
		v[n++] = mr_fmt("%s=%s", b[i].name, b[i].value);
	v[n] = NULL;
	return v;
}

/* runs ARGV with nothing but ENV around it */
static int
run_backend(const char *const *argv, char **env, const char *id)
{
	char **ours = environ;
	pid_t pid;
	int status;

	catch();
	fflush(stdout);
	environ = env;
	pid = mr_spawn(argv, -2, -1, -1, 0);
	environ = ours;
	if (pid == -1) {
		warn("%s", argv[0]);
		return MR_UNFIT;
	}
	child = pid;
	if (caught)
		kill(pid, SIGTERM);
	status = mr_wait(pid, 0);
	child = 0;
	if (caught) {	/* die as if we had not waited */
		signal(caught, SIG_DFL);
		raise(caught);
	}
	if (status > 128) {
		warnx("%s: the compiler was killed by signal %d", id,
		    status - 128);
		return MR_UNFIT;
	}
	if (status != MR_OK)
		warnx("%s: the compiler ended with status %d", id, status);
	return status == MR_OK || status == MR_NO ? status : MR_UNFIT;
}

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
	struct pair *pinned, *kept;
	struct mr_err e;
	char *script, **env;
	size_t n = 0, i;
	int status;

	if ((pinned = env_pinned(place, p->supercombo, &e)) == NULL) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	kept = env_kept(place);
	env = environment(kept, pinned);
	pairs_free(kept);
	pairs_free(pinned);
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
	status = run_backend(argv, env, j->id);
	for (i = 0; env[i] != NULL; i++)
		free(env[i]);
	free(env);
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
