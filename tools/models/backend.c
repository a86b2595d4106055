/* The Python program that does the work, and the signals that end it. */
#include <sys/types.h>

#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"

extern char **environ;

static volatile sig_atomic_t child;	/* the backend's pid while it runs */
static volatile sig_atomic_t caught;	/* the signal that ended us */

static void
pass_on(int sig)
{
	caught = sig;
	if (child > 0)
		kill((pid_t)child, SIGTERM);
}

void
backend_catch(void)
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

/* starts ARGV with nothing but ENV around it */
static pid_t
start(const char *const *argv, char **env)
{
	char **ours = environ;
	pid_t pid;
	size_t i;

	fflush(stdout);
	environ = env;
	pid = mr_spawn(argv, -2, -1, -1, 0);
	environ = ours;
	for (i = 0; env[i] != NULL; i++)
		free(env[i]);
	free(env);
	return pid;
}

int
backend_run(const char *const *argv, const struct place *place,
    int supercombo, const char *what)
{
	struct pair *pinned, *kept;
	struct mr_err e;
	pid_t pid;
	int status;

	if ((pinned = env_pinned(place, supercombo, &e)) == NULL) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	kept = env_kept(place);
	backend_catch();
	pid = start(argv, environment(kept, pinned));
	pairs_free(kept);
	pairs_free(pinned);
	if (pid == -1) {
		warn("%s", argv[0]);
		return MR_UNFIT;
	}
	child = pid;
	if (caught)
		kill(pid, SIGTERM);
	status = mr_wait(pid, 0);
	child = 0;
	if (caught)
		return MR_UNFIT;
	if (status > 128) {
		warnx("%s was killed by signal %d", what, status - 128);
		return MR_UNFIT;
	}
	if (status != MR_OK)
		warnx("%s ended with status %d", what, status);
	return status == MR_OK || status == MR_NO ? status : MR_UNFIT;
}

void
backend_end(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	raise(caught);
}
