/* How far a long transfer is: a bar on a terminal, a plain line every ten
 * seconds elsewhere, so that logs stay short and quick work stays quiet. */
#include <sys/ioctl.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

enum {
	DRAW_MS = 200,		/* between two drawings of the bar */
	LINE_MS = 10000,	/* between two plain lines */
	SLOTS = 16		/* the rate is of the last SLOTS drawings */
};

struct mr_progress {
	char		*what;
	uint64_t	 total, done;
	uint64_t	 moved;		/* of DONE, what came over the wire */
	int		 quiet, tty, drawn;
	int64_t		 next;		/* when to draw again */
	/* a ring of past moments: the rate of now, not of an hour ago */
	int64_t		 when[SLOTS];
	uint64_t	 was[SLOTS];
	unsigned	 n;
};

struct mr_progress *
mr_progress_new(const char *what, uint64_t total, int quiet)
{
	struct mr_progress *p;
	const char *term;

	p = mr_malloc(sizeof(*p));
	memset(p, 0, sizeof(*p));
	p->what = mr_strdup(what);
	p->total = total;
	p->quiet = quiet;
	term = getenv("TERM");
	p->tty = isatty(STDERR_FILENO) && term != NULL &&
	    strcmp(term, "dumb") != 0;
	p->when[0] = mr_now_ms();
	p->n = 1;
	p->next = p->when[0] + (p->tty ? DRAW_MS : LINE_MS);
	return p;
}

/* bytes a second over the ring; remembers this moment */
static double
rate(struct mr_progress *p, int64_t now)
{
	unsigned old;
	int64_t ms;
	uint64_t moved;

	old = p->n < SLOTS ? 0 : p->n % SLOTS;
	ms = now - p->when[old];
	moved = p->moved - p->was[old];
	p->when[p->n % SLOTS] = now;
	p->was[p->n % SLOTS] = p->moved;
	p->n++;
	return ms > 0 ? (double)moved * 1000.0 / (double)ms : 0;
}

/* N bytes for people: "34.9 MB" */
static void
amount(char *s, size_t len, double n)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB" };
	size_t u;

	for (u = 0; n >= 999.95 && u < 4; u++)
		n /= 1000.0;
	snprintf(s, len, "%.*f %s", u == 0 ? 0 : 1, n, unit[u]);
}

static unsigned
columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		return w.ws_col;
	return 80;
}

/* the bar, as long as fits before TEXT */
static void
bar(const struct mr_progress *p, const char *text)
{
	char line[512];
	size_t used, width, full, cols;

	cols = columns();
	if (cols > sizeof(line) - 1)
		cols = sizeof(line) - 1;
	used = strlen(p->what) + strlen(text) + 5;
	width = cols > used + 1 ? cols - used - 1 : 0;
	if (width > 40)
		width = 40;
	if (p->total > 0 && width >= 4) {
		full = p->done >= p->total ? width : (size_t)
		    ((double)p->done / (double)p->total * (double)width);
		memset(line, '#', full);
		memset(line + full, '.', width - full);
		line[width] = '\0';
		fprintf(stderr, "\r%s [%s] %s\033[K", p->what, line, text);
	} else {
		snprintf(line, cols, "%s %s", p->what, text);
		fprintf(stderr, "\r%s\033[K", line);
	}
	fflush(stderr);
}

static void
draw(struct mr_progress *p, int64_t now)
{
	char done[16], total[16], speed[16], left[32] = "", text[128];
	double bps;
	uint64_t s;

	bps = rate(p, now);
	amount(done, sizeof(done), (double)p->done);
	amount(speed, sizeof(speed), bps);
	if (p->total > 0) {
		amount(total, sizeof(total), (double)p->total);
		s = p->total > p->done && bps >= 1 ?
		    (uint64_t)((double)(p->total - p->done) / bps) : 0;
		if (s > 0 && s < 360000)
			snprintf(left, sizeof(left), ", %u:%02u:%02u left",
			    (unsigned)(s / 3600), (unsigned)(s / 60 % 60),
			    (unsigned)(s % 60));
		snprintf(text, sizeof(text), "%u%% of %s, %s/s%s",
		    (unsigned)((double)p->done / (double)p->total * 100.0),
		    total, speed, left);
	} else
		snprintf(text, sizeof(text), "%s, %s/s", done, speed);
	if (p->tty)
		bar(p, text);
	else
		fprintf(stderr, "%s: %s\n", p->what, text);
	p->drawn = 1;
	p->next = now + (p->tty ? DRAW_MS : LINE_MS);
}

void
mr_progress_add(struct mr_progress *p, uint64_t bytes)
{
	int64_t now;

	p->done += bytes;
	p->moved += bytes;
	if (p->quiet)
		return;
	now = mr_now_ms();
	if (now >= p->next)
		draw(p, now);
}

void
mr_progress_have(struct mr_progress *p, int64_t bytes)
{
	if (bytes < 0 && (uint64_t)-bytes > p->done)
		p->done = 0;
	else
		p->done += (uint64_t)bytes;
}

void
mr_progress_clear(struct mr_progress *p)
{
	if (p->tty && p->drawn) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
		p->drawn = 0;
		p->next = mr_now_ms() + DRAW_MS;
	}
}

void
mr_progress_end(struct mr_progress *p)
{
	if (p == NULL)
		return;
	mr_progress_clear(p);
	free(p->what);
	free(p);
}
