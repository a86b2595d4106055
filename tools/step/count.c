/* How far a run is: a line for each step that ended, and a bar. */
#include <sys/file.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mr.h"
#include "step.h"

uint64_t
count_add(const char *path, const char *line, int *fd, double *start)
{
	char buf[4096], *p;
	double secs, end;
	uint64_t n;
	ssize_t got;
	off_t at;

	*fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (*fd == -1 || flock(*fd, LOCK_EX) == -1 ||
	    mr_write(*fd, line, strlen(line)) == -1) {
		warn("%s", path);
		return 0;
	}
	*start = 0;
	for (n = 0, at = 0; (got = pread(*fd, buf, sizeof(buf) - 1, at)) > 0;
	    at += got) {
		buf[got] = '\0';
		if (at == 0 && sscanf(buf, "%*s %*s %*s %lf %lf", &secs,
		    &end) == 2)
			*start = end - secs;
		for (p = buf; (p = strchr(p, '\n')) != NULL; p++)
			n++;
	}
	return n;
}

void
count_erase(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

void
count_bar(uint64_t n, uint64_t total, double start)
{
	char left[32], bar[21];
	double secs;

	if (n >= total || !isatty(STDERR_FILENO))
		return;
	left[0] = '\0';
	secs = n > 0 && start > 0 ? ((double)time(NULL) - start) /
	    (double)n * (double)(total - n) : 0;
	if (secs >= 90)
		snprintf(left, sizeof(left), "  %.0f min left", secs / 60);
	else if (secs > 0)
		snprintf(left, sizeof(left), "  %.0f s left", secs);
	memset(bar, '.', sizeof(bar) - 1);
	memset(bar, '#', (size_t)(20 * n / total));
	bar[20] = '\0';
	/* what make says next begins on the left, over the bar */
	fprintf(stderr, "\r\033[K[%s] %llu/%llu  %llu%%%s\r", bar,
	    (unsigned long long)n, (unsigned long long)total,
	    (unsigned long long)(100 * n / total), left);
}
