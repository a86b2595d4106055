/* One child speaks to one device: whatever becomes of it, a stalled peer and
 * a fault of the library included, the parent decides what is next. */
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <err.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

enum { RESOLVE = 30 };	/* seconds for a name */

struct shared *sh;
static char stalled[256];	/* what the alarm says */
static unsigned bound;		/* seconds of it */
static pid_t parent;

void
give_up(enum scope scope, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sh->why, sizeof(sh->why), fmt, ap);
	va_end(ap);
	mr_one_line(sh->why);	/* it may be a device's own words */
	sh->scope = scope;
	_exit(status);
}

static void
on_alarm(int sig)
{
	(void)sig;
	sh->scope = LINK;
	memcpy(sh->why, stalled, sizeof(stalled));
	_exit(MR_AGAIN);
}

void
phase(const char *what, unsigned seconds)
{
	alarm(0);
	snprintf(stalled, sizeof(stalled), "%s: nothing was heard for %u s",
	    what, seconds);
	bound = seconds;
	alarm(bound);
}

void
heard(void)
{
	/* nobody would take what this child finds, and it holds a slot */
	if (getppid() != parent)
		_exit(MR_AGAIN);
	alarm(bound);
}

/* the name did not resolve when the pool was read: once more */
static void
resolve(struct device *d)
{
	int status;

	phase("name server", RESOLVE);
	status = policy_check(d);
	if (status == MR_AGAIN)
		give_up(LINK, MR_AGAIN, "%s: the name does not resolve",
		    d->host);
	if (status != MR_OK)
		give_up(DEVICE, status, "the policy refuses it");
}

pid_t
attempt(void (*what)(struct device *), struct device *d, int out)
{
	struct sigaction sa;
	pid_t pid;

	if (d->sh == NULL) {
		d->sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (d->sh == MAP_FAILED)
			err(MR_UNFIT, "mmap");
	}
	d->sh->scope = LINK;
	snprintf(d->sh->why, sizeof(d->sh->why),
	    "the process of the connection died");
	fflush(stdout);
	parent = getpid();
	pid = fork();
	if (pid == -1)
		err(MR_UNFIT, "fork");
	if (pid > 0)
		return pid;
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	sh = d->sh;
	if (out != -1 && dup2(out, STDOUT_FILENO) == -1)
		_exit(MR_UNFIT);
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_alarm;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	heard();
	if (d->salen == 0)
		resolve(d);
	what(d);
	alarm(0);
	if (fflush(stdout) == EOF)
		give_up(MODEL, MR_UNFIT, "standard output: lost");
	_exit(MR_OK);
}
