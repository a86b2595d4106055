/* The local transport: `models` on this machine, in the foreground. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

/* a compiler's status as ours; it has said why it failed, unless a signal
 * ended it, which is no verdict on its input */
static int
status_of(int status, const char *what)
{
	if (status == -1)
		warn("%s", what);
	else if (status > 128)
		warnx("%s: killed by signal %d%s", what, status - 128,
		    status - 128 == SIGKILL ? " (out of memory?)" : "");
	else if (status > MR_UNFIT && status != MR_AGAIN)
		warnx("%s: ended with status %d", what, status);
	return status == MR_OK || status == MR_NO || status == MR_AGAIN ?
	    status : MR_UNFIT;
}

/* asks the compiler who it is; W's identity is to be freed if it is 0 */
static int
ask(struct work *w)
{
	const char *argv[] = { "models", "--identity", NULL };
	char *text;
	int status;

	text = mr_capture(argv, MR_BUF, 60, &status);
	status = status_of(text == NULL ? -1 : status, "models --identity");
	if (status == MR_OK)
		status = work_identity(w, text, "models --identity");
	else if (status != MR_AGAIN)
		status = MR_UNFIT;
	free(text);
	return status;
}

static int
run_models(const char *in, const char *out)
{
	const char *argv[] = { "models", "--model", o.id, "--input-dir",
	    in, "--output-dir", out, "--input-format",
	    o.format, "--no-split", NULL, NULL, NULL, NULL };
	size_t n = 10;
	char *what;
	int status;

	if (o.version[0] != '\0') {
		argv[n++] = "--version";
		argv[n++] = o.version;
	}
	if (o.gpu)
		argv[n++] = "--external-gpu";
	what = mr_fmt("%s: models", o.id);
	status = status_of(mr_run(argv, -2, STDERR_FILENO, -1, 0), what);
	free(what);
	return status;
}

/* removes all that is in a job's folder: no old output is ever collected */
static void
clear_folder(const char *dir)
{
	struct dirent *d;
	char *path;
	DIR *h;

	h = opendir(dir);
	while (h != NULL && (d = readdir(h)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 ||
		    strcmp(d->d_name, "..") == 0)
			continue;
		path = mr_fmt("%s/%s", dir, d->d_name);
		if (unlink(path) == -1 && errno != ENOENT) {
			clear_folder(path);	/* a folder */
			rmdir(path);
		}
		free(path);
	}
	if (h != NULL)
		closedir(h);
}

/* hashes and syncs the output, then lands it */
static int
take_output(const char *output, const struct work *w)
{
	char hex[MR_HEX];
	uint64_t size;
	int fd, status;

	fd = open(output, O_RDONLY | O_CLOEXEC);
	if (fd == -1) {
		warnx("%s: models ended well, yet wrote no %s", o.id, output);
		return MR_NO;
	}
	if (mr_sha256_fd(fd, hex, &size) == -1 || mr_sync(fd) == -1) {
		warn("%s", output);
		close(fd);
		return MR_UNFIT;
	}
	close(fd);
	if (size == 0) {
		warnx("%s: the artifact is empty", o.id);
		return MR_NO;
	}
	status = land_begin(w);
	if (status != MR_OK)
		return status;
	if (rename(output, w->product) == -1 ||
	    mr_sync_dir(w->product) == -1) {
		warn("%s", w->product);
		return MR_UNFIT;
	}
	return land_end(w, hex, size);
}

/* is the compiler still the one of W? */
static int
unchanged(const struct work *w)
{
	struct work after;
	int same, status;

	status = ask(&after);
	if (status != MR_OK)
		return status;
	same = strcmp(w->device.text, after.device.text) == 0;
	mr_json_free(after.identity);
	mr_key_free(&after.device);
	if (same)
		return MR_OK;
	warnx("%s: the compiler changed during the compile: run make again",
	    o.id);
	return MR_AGAIN;
}

/* the compile in its key's own folder */
static int
compile(const struct work *w)
{
	struct mr_err e;
	char *dir, *in, *output;
	int status;

	dir = mr_fmt(".state/jobs/%s", w->key);
	in = mr_fmt("onnx/%s", o.id);
	output = mr_fmt("%s/%s_driving_tinygrad.pkl", dir, o.id);
	if (mr_mkdirs(dir, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	clear_folder(dir);
	status = run_models(in, dir);
	if (status == MR_OK)
		status = unchanged(w);
	if (status == MR_OK)
		status = take_output(output, w);
	clear_folder(dir);
	rmdir(dir);
	free(output);
	free(in);
	free(dir);
	return status;
}

int
local_compile(void)
{
	struct work w;
	int status, current;

	status = load_source(&w.source);
	if (status != MR_OK)
		return status;
	status = ask(&w);
	if (status == MR_OK) {
		work_key(&w);
		current = work_current(&w);
		if (current)
			puts("current");
		else
			status = hash_source(w.source);
		if (status == MR_OK && !current)
			status = compile(&w);
		free(w.product);
		free(w.record);
		mr_key_free(&w.k);
		mr_key_free(&w.device);
		mr_json_free(w.identity);
	}
	mr_json_free(w.source);
	return status;
}

/* tries the artifact of W in the folder of its key */
static int
try(const struct work *w)
{
	const char *argv[] = { "models", "--validate", w->product, "--model",
	    o.id, "--output-dir", NULL, NULL, NULL, NULL };
	struct mr_err e;
	char *dir, *name, *path, *text, *what;
	size_t n;
	int status;

	dir = mr_fmt(".state/jobs/%s", w->key);
	if (mr_mkdirs(dir, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	clear_folder(dir);
	argv[6] = dir;
	argv[7] = o.version[0] != '\0' ? "--version" : NULL;
	argv[8] = o.version;
	name = trial_result();
	path = mr_fmt("%s/%s", dir, name);
	what = mr_fmt("%s: models", o.id);
	status = status_of(mr_run(argv, -2, STDERR_FILENO, -1, 0), what);
	text = mr_slurp(path, RESULT_MAX, &n, &e);
	if (status <= MR_NO && text != NULL)
		status = trial_land(w, text, &e);
	else if (status == MR_OK)
		status = MR_UNFIT;
	if (status <= MR_UNFIT && status != MR_OK)
		warnx("%s: %s", o.id, e.text);
	free(text);
	clear_folder(dir);
	rmdir(dir);
	free(what);
	free(path);
	free(name);
	free(dir);
	return status;
}

int
local_validate(void)
{
	struct work w;
	struct mr_err e;
	char hex[MR_HEX];
	uint64_t size;
	int status;

	status = trial_load(&w.source);
	if (status != MR_OK)
		return status;
	status = ask(&w);
	if (status == MR_OK) {
		trial_key(&w);
		if (trial_current(&w))
			puts("current");
		else if (mr_sha256_file(w.product, hex, &size, &e) == -1)
			errx(MR_UNFIT, "%s", e.text);
		else if (strcmp(hex, mr_json_str(w.source, "sha256", "")) != 0)
			status = trial_spoiled(&w, hex);
		else
			status = try(&w);
		free(w.product);
		free(w.record);
		mr_key_free(&w.k);
		mr_key_free(&w.device);
		mr_json_free(w.identity);
	}
	mr_json_free(w.source);
	return status;
}

int
local_identity(void)
{
	struct work w;
	char *text;
	int status;

	status = ask(&w);
	if (status != MR_OK)
		return status;
	text = mr_json_dump(w.identity, 0);
	puts(text);
	free(text);
	mr_key_free(&w.device);
	mr_json_free(w.identity);
	return MR_OK;
}
