/* Children: started with set descriptors, waited for with a bound. */
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mr.h"

extern char **environ;

int64_t
mr_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* one descriptor of the child: TO becomes FROM (-1 inherits, -2 /dev/null) */
static void
place(posix_spawn_file_actions_t *fa, int from, int to)
{
	if (from == -2)
		posix_spawn_file_actions_addopen(fa, to, "/dev/null",
		    to == 0 ? O_RDONLY : O_WRONLY, 0);
	else if (from >= 0)
		posix_spawn_file_actions_adddup2(fa, from, to);
}

pid_t
mr_spawn(const char *const argv[], int in, int out, int err, int group)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none;
	pid_t pid;
	int rc;

	posix_spawn_file_actions_init(&fa);
	place(&fa, in, STDIN_FILENO);
	place(&fa, out, STDOUT_FILENO);
	place(&fa, err, STDERR_FILENO);
	posix_spawnattr_init(&at);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&at, &none);
	posix_spawnattr_setpgroup(&at, 0);
	posix_spawnattr_setflags(&at, (short)(POSIX_SPAWN_SETSIGMASK |
	    (group ? POSIX_SPAWN_SETPGROUP : 0)));
	rc = posix_spawnp(&pid, argv[0], &fa, &at,
	    (char *const *)(uintptr_t)argv, environ);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	if (rc != 0) {
		errno = rc;
		return -1;
	}
	return pid;
}

int
mr_wait(pid_t pid, unsigned seconds)
{
	struct timespec pause = { 0, 1000000 };
	int64_t end;
	pid_t got;
	int late = 0, ws;

	end = mr_now_ms() + (int64_t)seconds * 1000;
	for (;;) {
		got = waitpid(pid, &ws, seconds > 0 && !late ? WNOHANG : 0);
		if (got == pid)
			break;
		if (got == -1 && errno != EINTR)
			return -1;
		if (got != 0)
			continue;
		if (mr_now_ms() >= end) {
			late = 1;
			if (getpgid(pid) == pid)
				kill(-pid, SIGKILL);
			else
				kill(pid, SIGKILL);
			continue;
		}
		/* from 1 ms up to 20 ms: quick children are not held up */
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 20000000)
			pause.tv_nsec *= 2;
	}
	if (late) {
		errno = ETIMEDOUT;
		return -1;
	}
	return WIFSIGNALED(ws) ? 128 + WTERMSIG(ws) : WEXITSTATUS(ws);
}

/* ---- what ends us while a child runs is handed on to it: make and step
 * tell their own children only, and the child would live on ---- */

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

static volatile sig_atomic_t heir;	/* kill's first argument, or 0 */
static volatile sig_atomic_t told;	/* the signal that came */

struct guard {
	struct sigaction old[ENDS];
	sigset_t	 mask;
};

static void
on_end(int sig)
{
	int saved = errno;

	told = sig;
	if (heir != 0)
		kill((pid_t)heir, sig);
	errno = saved;
}

/* holds the signals back until there is a child to tell */
static void
guard_begin(struct guard *g)
{
	struct sigaction sa;
	sigset_t set;
	size_t i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_end;
	sigemptyset(&sa.sa_mask);
	sigemptyset(&set);
	for (i = 0; i < ENDS; i++)
		sigaddset(&set, ends[i]);
	sigprocmask(SIG_BLOCK, &set, &g->mask);
	told = 0;
	heir = 0;
	for (i = 0; i < ENDS; i++) {
		sigaction(ends[i], NULL, &g->old[i]);
		if (g->old[i].sa_handler != SIG_IGN)	/* nohup */
			sigaction(ends[i], &sa, NULL);
	}
}

static void
guard_child(const struct guard *g, pid_t pid, int group)
{
	heir = pid == -1 ? 0 : group ? -pid : pid;
	sigprocmask(SIG_SETMASK, &g->mask, NULL);
}

/* then the signal is ours */
static void
guard_end(const struct guard *g)
{
	size_t i;
	int sig, saved = errno;

	heir = 0;
	for (i = 0; i < ENDS; i++)
		sigaction(ends[i], &g->old[i], NULL);
	sig = told;
	if (sig != 0)
		raise(sig);
	errno = saved;
}

int
mr_run(const char *const argv[], int in, int out, int err, unsigned seconds)
{
	struct guard g;
	int status;
	pid_t pid;

	guard_begin(&g);
	pid = mr_spawn(argv, in, out, err, seconds > 0);
	guard_child(&g, pid, seconds > 0);
	status = pid == -1 ? -1 : mr_wait(pid, seconds);
	guard_end(&g);
	return status;
}

char *
mr_capture(const char *const argv[], size_t max, unsigned seconds, int *status)
{
	struct pollfd pfd;
	struct guard g;
	int64_t end, left;
	size_t len = 0;
	ssize_t got;
	pid_t pid;
	char *buf;
	int fd[2], late = 0;

	if (pipe(fd) == -1)
		return NULL;
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	fcntl(fd[1], F_SETFD, FD_CLOEXEC);
	guard_begin(&g);
	pid = mr_spawn(argv, -2, fd[1], -1, seconds > 0);
	guard_child(&g, pid, seconds > 0);
	close(fd[1]);
	if (pid == -1) {
		guard_end(&g);
		close(fd[0]);
		return NULL;
	}
	buf = mr_malloc(max + 1);
	end = mr_now_ms() + (int64_t)seconds * 1000;
	while (len < max) {
		left = seconds > 0 ? end - mr_now_ms() : -1;
		pfd.fd = fd[0];
		pfd.events = POLLIN;
		if (seconds > 0 && (left <= 0 ||
		    poll(&pfd, 1, (int)left) == 0)) {
			late = 1;
			break;
		}
		got = read(fd[0], buf + len, max - len);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	close(fd[0]);
	buf[len] = '\0';
	if (late)
		kill(-pid, SIGKILL);
	*status = mr_wait(pid, seconds);
	guard_end(&g);
	if (late) {
		*status = -1;
		errno = ETIMEDOUT;
	}
	return buf;
}
