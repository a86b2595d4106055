/* The command of a step: started, followed, told to stop. */
#include <sys/select.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"
#include "step.h"

enum {
	LINE = 1 << 16,	/* a longer line of output is cut in two */
	DRAIN = 64	/* reads of what a dead child left in a pipe */
};

/* one of the child's two outputs */
struct stream {
	int	fd;
	size_t	len;
	char	buf[LINE];
};

volatile sig_atomic_t stopped;
static volatile sig_atomic_t forward;

/* Reads once from F and takes what lines there are; 0 at its end, -1 when
 * nothing is there now. */
static int
drain(struct step *s, struct stream *f, int is_stdout)
{
	char *p, *nl;
	ssize_t got;

	got = read(f->fd, f->buf + f->len, sizeof(f->buf) - 1 - f->len);
	if (got == -1)
		return -1;
	f->len += (size_t)got;
	for (p = f->buf; (nl = memchr(p, '\n', f->len)) != NULL; p = nl + 1) {
		f->len -= (size_t)(nl + 1 - p);
		log_line(s, p, (size_t)(nl - p), is_stdout);
	}
	memmove(f->buf, p, f->len);
	if (f->len > 0 && (got == 0 || f->len == sizeof(f->buf) - 1)) {
		log_line(s, f->buf, f->len, is_stdout);
		f->len = 0;
	}
	return got > 0;
}

static void
on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig == SIGCHLD || sig == SIGPIPE)
		return;
	stopped = sig;
	/* what the terminal sends reaches the child by itself */
	forward = info->si_pid != 0;
}

/* Catches what stops a run, but leaves ignored (nohup) what is ignored. All
 * stay blocked but in pselect; OLD is the mask for there. */
static void
catch_signals(sigset_t *old)
{
	static const int sigs[] = { SIGCHLD, SIGPIPE, SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa, was;
	sigset_t set;
	size_t i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_signal;
	sa.sa_flags = SA_SIGINFO;
	sigemptyset(&sa.sa_mask);
	sigemptyset(&set);
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		sigaction(sigs[i], NULL, &was);
		if (i >= 2 && was.sa_handler == SIG_IGN)
			continue;
		sigaction(sigs[i], &sa, NULL);
		if (sigs[i] != SIGPIPE)
			sigaddset(&set, sigs[i]);
	}
	sigprocmask(SIG_BLOCK, &set, old);
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		if (sigismember(&set, sigs[i]))
			sigdelset(old, sigs[i]);
}

/* Follows the child to its end: the status as waitpid gives it. What a
 * grandchild still holds open is not waited for. */
static int
follow(struct step *s, pid_t pid, struct stream f[2], const sigset_t *mask)
{
	fd_set set;
	pid_t got;
	int i, k, ws = 0;

	for (got = 0; got != pid; ) {
		FD_ZERO(&set);
		for (i = 0, k = -1; i < 2; i++)
			if (f[i].fd != -1) {
				FD_SET(f[i].fd, &set);
				k = f[i].fd > k ? f[i].fd : k;
			}
		if (pselect(k + 1, &set, NULL, NULL, NULL, mask) <= 0)
			FD_ZERO(&set);
		if (stopped && forward)
			kill(pid, stopped);
		forward = 0;
		got = waitpid(pid, &ws, WNOHANG);
		for (i = 0; i < 2; i++)
			if (f[i].fd != -1 && FD_ISSET(f[i].fd, &set) &&
			    drain(s, &f[i], i == 0) == 0) {
				close(f[i].fd);
				f[i].fd = -1;
			}
	}
	for (i = 0; i < 2; i++) {
		for (k = 0; f[i].fd != -1 && k < DRAIN; k++)
			if (drain(s, &f[i], i == 0) <= 0)
				break;
		if (f[i].len > 0)
			log_line(s, f[i].buf, f[i].len, i == 0);
	}
	return ws;
}

/* Takes it in as output that the command did not start. */
static void
cannot(struct step *s, const char *command, const char *why)
{
	char *line;

	line = mr_fmt("%s: %s\n", command, why);
	log_line(s, line, strlen(line) - 1, 0);
	free(line);
}

int
child_run(struct step *s, char *const argv[])
{
	static struct stream f[2];
	int fd[2][2], i, ws;
	sigset_t mask;
	pid_t pid;

	for (i = 0; i < 2; i++) {
		if (pipe(fd[i]) == -1 || fd[i][0] >= FD_SETSIZE)
			err(MR_UNFIT, "%s: pipe", s->id);
		fcntl(fd[i][0], F_SETFD, FD_CLOEXEC);
		fcntl(fd[i][1], F_SETFD, FD_CLOEXEC);
		fcntl(fd[i][0], F_SETFL, O_NONBLOCK);
		f[i].fd = fd[i][0];
	}
	catch_signals(&mask);
	pid = mr_spawn((const char *const *)argv, -2, fd[0][1], fd[1][1], 0);
	ws = errno;
	close(fd[0][1]);
	close(fd[1][1]);
	if (pid == -1) {
		cannot(s, argv[0], strerror(ws));
		return MR_UNFIT;
	}
	ws = follow(s, pid, f, &mask);
	/* POSIX lets posix_spawn tell of a failure so */
	if (WIFEXITED(ws) && WEXITSTATUS(ws) == 127 && s->lines == 0) {
		cannot(s, argv[0], "cannot be run");
		return MR_UNFIT;
	}
	return WIFSIGNALED(ws) ? 128 + WTERMSIG(ws) : WEXITSTATUS(ws);
}
