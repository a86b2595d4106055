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

/* milliseconds of a clock that nobody sets */
static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int
mr_wait(pid_t pid, unsigned seconds)
{
	struct timespec pause = { 0, 1000000 };
	int64_t end;
	pid_t got;
	int late = 0, ws;

	end = now_ms() + (int64_t)seconds * 1000;
	for (;;) {
		got = waitpid(pid, &ws, seconds > 0 && !late ? WNOHANG : 0);
		if (got == pid)
			break;
		if (got == -1 && errno != EINTR)
			return -1;
		if (got != 0)
			continue;
		if (now_ms() >= end) {
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

int
mr_run(const char *const argv[], int in, int out, int err, unsigned seconds)
{
	pid_t pid;

	pid = mr_spawn(argv, in, out, err, seconds > 0);
	return pid == -1 ? -1 : mr_wait(pid, seconds);
}

char *
mr_capture(const char *const argv[], size_t max, unsigned seconds, int *status)
{
	struct pollfd pfd;
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
	pid = mr_spawn(argv, -2, fd[1], -1, seconds > 0);
	close(fd[1]);
	if (pid == -1) {
		close(fd[0]);
		return NULL;
	}
	buf = mr_malloc(max + 1);
	end = now_ms() + (int64_t)seconds * 1000;
	while (len < max) {
		left = seconds > 0 ? end - now_ms() : -1;
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
	if (late) {
		*status = -1;
		errno = ETIMEDOUT;
	}
	return buf;
}
