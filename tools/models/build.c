/* One model, from its staged files to its artifact. */
#include <sys/stat.h>
#include <sys/types.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

extern char **environ;

enum {
	LONG_HISTORY = 99,		/* steps: no frame is skipped */
	HEADROOM = 16 << 20,		/* of an artifact over its weights */
	ARGS = 32
};
#define LIMIT "100000000"		/* a hosted file's bytes */

static volatile sig_atomic_t child;	/* the backend's pid while it runs */
static volatile sig_atomic_t caught;	/* the signal that ended us */

/* what the command line of the backend is made of */
struct plan {
	const struct staged	*files;
	enum component		 use[3];
	size_t			 n;
	const char		*type;		/* --model-type */
	int			 supercombo;
	uint64_t		 bytes;		/* of all sources */
	int			 skip;		/* --frame-skip */
	char			*version;
};

/* ---- what is to be built ---- */

static int
select_files(struct plan *p, const struct job *j, struct mr_err *e)
{
	char *const *f = p->files->file;
	enum component first;

	p->supercombo = strcmp(j->format, "supercombo") == 0 ||
	    (strcmp(j->format, "auto") == 0 && f[SUPERCOMBO] != NULL);
	if (p->supercombo) {
		if (f[SUPERCOMBO] == NULL)
			return mr_fail(e, "%s: no driving_supercombo is "
			    "staged, wanted for --input-format supercombo",
			    j->id);
		p->type = "supercombo";
		p->use[p->n++] = SUPERCOMBO;
		return 0;
	}
	first = f[ON_POLICY] != NULL ? ON_POLICY : POLICY;
	if (f[VISION] == NULL || f[first] == NULL)
		return mr_fail(e, "%s: no %s is staged", j->id,
		    f[VISION] == NULL ? "driving_vision" :
		    "driving_policy or driving_on_policy");
	if (f[ON_POLICY] != NULL && f[POLICY] != NULL)
		warnx("%s: is not used, since there is an on_policy",
		    f[POLICY]);
	p->use[p->n++] = VISION;
	p->use[p->n++] = first;
	if (f[OFF_POLICY] != NULL)
		p->use[p->n++] = OFF_POLICY;
	p->type = p->n == 3 ? "vision_multi_policy" : "vision_policy";
	return 0;
}

/* steps of the history that a model reads, 0 if it reads none */
static int64_t
history(const struct mr_onnx *w)
{
	struct mr_onnx_info info;
	size_t i;

	mr_onnx_info(w, &info);
	for (i = 0; i < info.ninputs; i++)
		if (strcmp(info.inputs[i].name, "features_buffer") == 0 &&
		    info.inputs[i].ndim > 1)
			return info.inputs[i].dim[1];
	return 0;
}

/* walks every source; says what is read */
static int
check_files(struct plan *p, struct mr_err *e)
{
	struct mr_onnx *w;
	struct stat st;
	const char *path;
	size_t i;

	p->skip = 4;	/* runs at 20 Hz, remembers at 5 Hz */
	for (i = 0; i < p->n; i++) {
		path = p->files->file[p->use[i]];
		if (mr_onnx_file(path, &w, e) == -1)
			return -1;
		if (history(w) >= LONG_HISTORY)
			p->skip = 1;
		mr_onnx_free(w);
		if (stat(path, &st) == -1)
			return mr_fail(e, "%s: %s", path, strerror(errno));
		p->bytes += (uint64_t)st.st_size;
		printf("  source %s: %s (%lld bytes)\n",
		    component_name(p->use[i]), path, (long long)st.st_size);
	}
	return 0;
}

/* the option's, the device's, or the format's default; never changes layout */
static int
find_version(struct plan *p, const struct job *j, struct mr_err *e)
{
	const char *dir, *v = j->version;
	struct mr_json all;
	char *path;
	int rc = 0;

	p->version = NULL;
	if (v[0] == '\0') {
		dir = getenv("MR_MODELS_DIR");
		path = mr_fmt("%s/.model_versions.json",
		    dir != NULL && dir[0] != '\0' ? dir : "/data/models");
		if (mr_json_load(&all, path, e) == 0) {
			v = mr_json_str(all, j->id, "");
			if (!mr_version_ok(v))
				rc = mr_fail(e, "%s: %s: version is "
				    "\"%.40s\", wanted v and a number", path,
				    j->id, v);
			p->version = mr_strdup(v);
			mr_json_free(all);
		} else if (errno != ENOENT)
			rc = -1;
		free(path);
	}
	if (rc == 0 && p->version == NULL)
		p->version = mr_strdup(v);
	if (rc == 0 && p->version[0] == '\0' && p->supercombo) {
		free(p->version);
		p->version = mr_strdup("v16");
	}
	return rc;
}

/* ---- the outputs ---- */

/* removes what DIR holds of ID's artifacts: markers first, then the rest */
static int
clear_outputs(const char *dir, const char *id, struct mr_err *e)
{
	static const char *const ends[] = {
		"_driving_tinygrad.pkl.sha256",
		"_driving_*_tinygrad.pkl.sha256", "_driving_tinygrad.pkl",
		"_driving_tinygrad.pkl.p[0-9][0-9]",
		"_driving_*_tinygrad.pkl", "_driving_*_metadata.pkl",
		"_driving_*_tinygrad.pkl.p[0-9][0-9]"
	};
	struct dirent *d;
	size_t i, n = strlen(id);
	DIR *dp;
	int rc = 0;

	for (i = 0; rc == 0 && i < sizeof(ends) / sizeof(ends[0]); i++) {
		if ((dp = opendir(dir)) == NULL)
			return mr_fail(e, "%s: %s", dir, strerror(errno));
		while (rc == 0 && (d = readdir(dp)) != NULL)
			if (strncmp(d->d_name, id, n) == 0 &&
			    fnmatch(ends[i], d->d_name + n, 0) == 0 &&
			    unlinkat(dirfd(dp), d->d_name, 0) == -1)
				rc = mr_fail(e, "%s/%s: %s", dir, d->d_name,
				    strerror(errno));
		closedir(dp);
	}
	return rc;
}

/* little-endian */
static uint64_t
le64(const unsigned char *b)
{
	uint64_t v = 0;
	int i;

	for (i = 7; i >= 0; i--)
		v = v << 8 | b[i];
	return v;
}

/* walks the blocks of an out-of-band artifact to its very end */
static int
check_blocks(int fd, const char *path, uint64_t size, struct mr_err *e)
{
	unsigned char head[8];
	uint64_t at = 0, n;

	while (at < size) {
		if (size - at < 8 || lseek(fd, (off_t)at, SEEK_SET) == -1 ||
		    mr_read(fd, head, 8) != 8 ||
		    (n = le64(head)) > size - at - 8)
			return mr_fail(e, "%s: a block runs past the end of "
			    "the file", path);
		at += 8 + n;
	}
	return 0;
}

/* is PATH framed as an artifact is? *SIZE: its bytes */
static int
check_output(const char *path, uint64_t *size, struct mr_err *e)
{
	unsigned char head[10] = { 0 }, tail = 0;
	struct stat st;
	uint64_t n;
	int fd, rc = 0;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return mr_fail(e, "%s: the compiler ended well, but wrote no "
		    "artifact", path);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    mr_read(fd, head, sizeof(head)) < 0 ||
	    lseek(fd, -1, SEEK_END) == -1 || mr_read(fd, &tail, 1) != 1) {
		rc = mr_fail(e, "%s: is empty or unreadable", path);
	} else if (*size = (uint64_t)st.st_size, n = le64(head),
	    head[8] == 0x80 && head[9] == 5 && n > 0 && n <= *size - 8) {
		rc = check_blocks(fd, path, *size, e);
	} else if (head[0] != 0x80 || head[1] < 4 || head[1] > 5 ||
	    tail != '.') {
		rc = mr_fail(e, "%s: is no whole pickle: begins with %02x "
		    "%02x, ends with %02x", path, head[0], head[1], tail);
	}
	close(fd);
	return rc;
}

int
split(const char *bin, const char *path, const char *out, uint64_t part,
    int force)
{
	char *tool, *bytes;
	const char *argv[12];
	size_t n = 0;
	int status;

	tool = mr_fmt("%s/pkl-split", bin);
	bytes = mr_fmt("%llu", (unsigned long long)part);
	argv[n++] = tool;
	if (force)
		argv[n++] = "-f";
	argv[n++] = "-l";
	argv[n++] = LIMIT;
	argv[n++] = "-z";
	argv[n++] = bytes;
	argv[n++] = "-o";
	argv[n++] = out;
	argv[n++] = "--";
	argv[n++] = path;
	argv[n] = NULL;
	status = mr_run(argv, -2, -1, -1, 0);
	if (status == -1)
		warn("%s", tool);
	free(tool);
	free(bytes);
	return status == -1 || status > MR_AGAIN ? MR_UNFIT : status;
}

/* ---- the backend ---- */

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
	struct sigaction sa;
	size_t i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = pass_on;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
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

	if ((pinned = place_pinned(place, p->supercombo, &e)) == NULL) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	kept = place_kept(place);
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
	return clear_outputs(*out, j->id, e);
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
	if (status == MR_OK && check_output(artifact, &size, &e) == -1) {
		warnx("%s", e.text);
		status = MR_NO;
	}
	if (status == MR_OK) {
		printf("  saved %s_driving_tinygrad.pkl (%llu bytes)\n",
		    j->id, (unsigned long long)size);
		if (!j->whole && size > strtoull(LIMIT, NULL, 10)) {
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
	struct place place;
	struct plan p;
	struct mr_err e;
	char *in;
	int status = MR_NO;

	if ((in = realpath(j->in, NULL)) == NULL) {
		warn("%s", j->in);
		return MR_NO;
	}
	memset(&p, 0, sizeof(p));
	if (staging_read(&s, in, j->id, &e) == -1) {
		warnx("%s", e.text);
		free(in);
		return MR_NO;
	}
	p.files = staging_find(&s, j->id, in, &e);
	if (p.files == NULL || select_files(&p, j, &e) == -1 ||
	    check_files(&p, &e) == -1 || find_version(&p, j, &e) == -1) {
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
