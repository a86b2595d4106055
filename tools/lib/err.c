/* Messages, statuses, and memory that is there or ends the tool. */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

int
mr_fail(struct mr_err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

/* where a status stands between the good (0) and the worst */
static int
rank(int status)
{
	switch (status) {
	case MR_OK:
		return 0;
	case MR_NO:
		return 1;
	case MR_AGAIN:
		return 2;
	default:
		return 3;
	}
}

int
mr_worse(int a, int b)
{
	return rank(a) >= rank(b) ? a : b;
}

int
mr_finish(int status)
{
	int lost;

	lost = ferror(stdout);
	if (fflush(stdout) != 0)
		lost = 1;
	/* a closed stdout matters only where something was to go there */
	if (close(STDOUT_FILENO) != 0 && errno != EBADF)
		lost = 1;
	if (lost) {
		warnx("standard output: write failed, output is lost");
		return mr_worse(status, MR_UNFIT);
	}
	return status;
}

/* the name this program was called by, without its folder */
static const char *
progname(void)
{
#ifdef __APPLE__
	return getprogname();
#else
	extern char *program_invocation_short_name;

	return program_invocation_short_name;
#endif
}

int
mr_version(void)
{
	printf("%s %s\n", progname(), MR_VERSION);
	return mr_finish(MR_OK);
}

void *
mr_malloc(size_t n)
{
	void *p;

	p = malloc(n ? n : 1);
	if (p == NULL)
		err(MR_UNFIT, "no memory for %zu bytes", n);
	return p;
}

void *
mr_realloc(void *p, size_t n)
{
	p = realloc(p, n ? n : 1);
	if (p == NULL)
		err(MR_UNFIT, "no memory for %zu bytes", n);
	return p;
}

char *
mr_strdup(const char *s)
{
	size_t n;
	char *p;

	n = strlen(s) + 1;
	p = mr_malloc(n);
	memcpy(p, s, n);
	return p;
}

char *
mr_fmt(const char *fmt, ...)
{
	va_list ap;
	char *s, most[256];
	int n;

	va_start(ap, fmt);
	n = vsnprintf(most, sizeof(most), fmt, ap);
	va_end(ap);
	if (n < 0)
		errx(MR_UNFIT, "cannot format a message");
	s = mr_malloc((size_t)n + 1);
	if ((size_t)n < sizeof(most)) {
		memcpy(s, most, (size_t)n + 1);
		return s;
	}
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

int
mr_number(const char *s, uint64_t max, uint64_t *value)
{
	uint64_t v;
	unsigned d;

	if (*s == '\0' || (s[0] == '0' && s[1] != '\0'))
		return -1;
	for (v = 0; *s != '\0'; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		d = (unsigned)(*s - '0');
		if (v > (UINT64_MAX - d) / 10)
			return -1;
		v = v * 10 + d;
	}
	if (v > max)
		return -1;
	*value = v;
	return 0;
}
