/* The log of a model, and the last lines of a step's output. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mr.h"
#include "step.h"

enum { LOG_MAX = 1 << 20 };	/* a log longer than this is put aside */

/* Copies at most CAP bytes of what a terminal would show of a line. */
static void
clean(char dst[CAP + 1], const char *s, size_t n)
{
	size_t i, k, len;

	while (n > 0 && s[n - 1] == '\r')
		n--;
	for (i = n; i > 0 && s[i - 1] != '\r'; i--)
		;
	for (len = 0; i < n; i += k > 0 ? k : 1) {
		k = s[i] != '\0' ? mr_utf8(s + i, n - i) : 0;
		if (len + (k > 0 ? k : 3) > CAP)
			break;
		memcpy(dst + len, k > 0 ? s + i : "\357\277\275",
		    k > 0 ? k : 3);
		len += k > 0 ? k : 3;
	}
	dst[len] = '\0';
}

void
log_line(struct step *s, char *text, size_t n, int is_stdout)
{
	char *dst;

	text[n] = '\n';
	if (mr_write(s->log, text, n + 1) == -1 && !s->lost) {
		warn("%s: the log is incomplete", s->logpath);
		s->lost = 1;
	}
	if (s->verbose)
		fprintf(stderr, "%s: %.*s\n", s->id, (int)n, text);
	dst = s->tail[s->lines++ % TAIL];
	clean(dst, text, n);
	if (dst[strspn(dst, " \t")] == '\0')
		return;
	memcpy(s->last, dst, CAP + 1);
	if (is_stdout)
		s->current = strcmp(dst, "current") == 0;
}

void
log_open(struct step *s, char *const argv[])
{
	char date[40], *text, *old;
	struct mr_err e;
	struct stat st;
	struct tm tm;
	time_t now;

	if (mr_mkdirs(s->logs, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	s->logpath = mr_fmt("%s/%s.log", s->logs, s->id);
	if (stat(s->logpath, &st) == 0 && st.st_size > LOG_MAX) {
		old = mr_fmt("%s.old", s->logpath);
		if (rename(s->logpath, old) == -1)
			warn("%s: rename", old);
		free(old);
	}
	s->log = open(s->logpath, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
	    0666);
	now = time(NULL);
	localtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S%z", &tm);
	text = mr_fmt("== %s %s", s->stage, date);
	for (; *argv != NULL; argv++) {
		old = mr_fmt("%s %s", text, *argv);
		free(text);
		text = old;
	}
	if (s->log == -1 || mr_write(s->log, text, strlen(text)) == -1 ||
	    mr_write(s->log, "\n", 1) == -1)
		err(MR_UNFIT, "%s", s->logpath);
	free(text);
}
