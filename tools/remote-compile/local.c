/* The local transport: `models` on this machine. */
#include <err.h>
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

int
local_identity(struct mr_json *identity, struct mr_key *device)
{
	const char *argv[] = { "models", "--identity", NULL };
	struct mr_err e;
	char *text;
	int status;

	text = mr_capture(argv, MR_BUF, 60, &status);
	status = status_of(text == NULL ? -1 : status, "models --identity");
	if (status != MR_OK) {
		free(text);
		return status == MR_AGAIN ? MR_AGAIN : MR_UNFIT;
	}
	if (mr_json_parse(identity, text, strlen(text), &e) == -1) {
		warnx("models --identity: %s", e.text);
		free(text);
		return MR_UNFIT;
	}
	free(text);
	if (mr_key_device(device, *identity) == 0)
		return MR_OK;
	warnx("models --identity: wanted an object that names a toolchain");
	mr_key_free(device);
	mr_json_free(*identity);
	return MR_UNFIT;
}

int
local_compile(const char *in, const char *out)
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
