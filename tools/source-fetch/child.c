/* The tools that do the work: command lines, runs, statuses. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source-fetch.h"

void
word(struct words *v, const char *s)
{
	if (v->n + 1 >= MAX_WORDS)
		errx(MR_UNFIT, "%s: too many words for %s", o.id, v->w[0]);
	v->w[v->n++] = mr_strdup(s);
	v->w[v->n] = NULL;
}

void
forget(struct words *v)
{
	while (v->n > 0)
		free((char *)(uintptr_t)v->w[--v->n]);
}

void
git_blob(struct words *v, const char *form, const char *operand)
{
	v->n = 0;
	word(v, "git-blob");
	word(v, "-C");
	word(v, o.repo);
	if (o.remote != NULL) {
		word(v, "-u");
		word(v, o.remote);
	}
	word(v, form);
	if (operand != NULL)
		word(v, operand);
}

/* a child's status as ours: what it could not say is 2 */
static int
status_of(int status, const char *tool)
{
	if (status == -1)
		warnx("%s: %s: %s", o.id, tool, strerror(errno));
	else if (status > 128)
		warnx("%s: %s: killed by signal %d", o.id, tool, status - 128);
	else if (status > MR_UNFIT && status != MR_AGAIN)
		warnx("%s: %s: ended with status %d", o.id, tool, status);
	return status == MR_OK || status == MR_NO || status == MR_AGAIN ?
	    status : MR_UNFIT;
}

int
must_open(const char *file, int flags)
{
	int fd;

	fd = open(file, flags | O_CLOEXEC, 0666);
	if (fd == -1)
		err(MR_UNFIT, "%s", file);
	return fd;
}

int
run(struct words *v, const char *in, const char *out)
{
	int fi = -2, fo = -1, status;

	if (in != NULL)
		fi = must_open(in, O_RDONLY);
	if (out != NULL)
		fo = must_open(out, O_WRONLY | O_CREAT | O_TRUNC);
	status = status_of(mr_run(v->w, fi, fo, -1, 0), v->w[0]);
	if (fi >= 0)
		close(fi);
	if (fo >= 0 && close(fo) == -1)
		err(MR_UNFIT, "%s", out);
	forget(v);
	return status;
}

char *
ask(struct words *v, int *status)
{
	char *text;

	text = mr_capture(v->w, MR_BUF, 0, status);
	*status = status_of(text == NULL ? -1 : *status, v->w[0]);
	forget(v);
	return text != NULL ? text : mr_strdup("");
}
