/* Git children that never prompt, can be stopped, and die with us. */
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

enum { OUT_MAX = 1 << 20 };	/* bytes of output that are kept */

/* Is the N bytes long HOST this machine itself? */
static int
loopback(const char *host, size_t n)
{
	return (n == 9 && strncmp(host, "localhost", n) == 0) ||
	    (n == 5 && strncmp(host, "[::1]", n) == 0) ||
	    (strncmp(host, "127.", 4) == 0 &&
	    strspn(host, "0123456789.") == n);
}

/* the host in an authority "[user[:password]@]host[:port]"; its length */
static size_t
host_of(const char **p)
{
	const char *s;
	size_t n, i;

	s = *p;
	n = strcspn(s, "/?#");
	for (i = n; i > 0 && s[i - 1] != '@'; i--)
		;
	s += i;
	n -= i;
	*p = s;
	if (*s == '[') {
		for (i = 0; i < n && s[i] != ']'; i++)
			;
		return i < n ? i + 1 : n;
	}
	for (i = 0; i < n && s[i] != ':'; i++)
		;
	return i;
}

int
mr_git_url(const char *url, struct mr_err *e)
{
	static const char *const known[] = { "https", "ssh", "git+ssh",
	    "ssh+git", "file", "http", "git" };
	const char *s, *host;
	size_t n, i;

	for (s = url; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return mr_fail(e, "remote: has a control character, "
			    "wanted a URL or path");
	if (*url == '\0' || *url == '-')
		return mr_fail(e, "%s: not a URL or path", url);
	n = strspn(url, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
	if (strncmp(url + n, "::", 2) == 0)
		return mr_fail(e, "%s: names a remote helper, wanted https, "
		    "ssh, file or a path", url);
	if (strncmp(url + n, "://", 3) != 0)
		return 0;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == n && strncmp(known[i], url, n) == 0)
			break;
	host = url + n + 3;
	if (i == sizeof(known) / sizeof(known[0]))
		return mr_fail(e, "%.*s: unknown kind of URL, wanted https, "
		    "ssh, file or a path", (int)n, url);
	if (i < 5)
		return 0;
	n = host_of(&host);
	if (!loopback(host, n))
		return mr_fail(e, "%s://%.*s: is neither encrypted nor on this "
		    "machine, wanted https or ssh", known[i], (int)n, host);
	return 0;
}

char *
mr_git_shown(const char *url)
{
	const char *host, *at, *end;

	host = strstr(url, "://");
	if (host == NULL)
		return mr_strdup(url);
	host += 3;
	end = host + strcspn(host, "/?#");
	for (at = end; at > host && at[-1] != '@'; at--)
		;
	return mr_fmt("%.*s%s", (int)(host - url), url, at);
}

/* the user's own list of transports stands, where there is one */
static int allow_is_ours;

void
mr_git_env(void)
{
	/* what `git rev-parse --local-env-vars` lists, without the settings
	 * (GIT_CONFIG_COUNT, GIT_CONFIG_PARAMETERS) that a site may give */
	static const char *const local[] = { "GIT_DIR", "GIT_WORK_TREE",
	    "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_PREFIX",
	    "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
	    "GIT_NO_REPLACE_OBJECTS", "GIT_IMPLICIT_WORK_TREE",
	    "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE",
	    "GIT_QUARANTINE_PATH", "GIT_PROTOCOL", "LANGUAGE" };
	size_t i;
	int fd;

	/* where standard output is closed, no lock or pack may become it */
	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	for (i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		unsetenv(local[i]);
	setenv("LC_ALL", "C", 1);
	setenv("GIT_TERMINAL_PROMPT", "0", 1);
	setenv("GIT_ASKPASS", "true", 1);
	setenv("SSH_ASKPASS", "true", 1);
	setenv("SSH_ASKPASS_REQUIRE", "never", 1);
	setenv("GCM_INTERACTIVE", "never", 1);
	allow_is_ours = getenv("GIT_ALLOW_PROTOCOL") == NULL;
	signal(SIGCHLD, SIG_DFL);
}

/* ---- the keeper: a process between us and git ---- */

/* Becomes ARGV, with the signals as a program expects them. */
static void
become(const char *const argv[])
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	size_t i;
	int fd;

	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], SIG_DFL);
	fd = open("/dev/null", O_RDONLY);
	if (fd != -1 && fd != STDIN_FILENO)
		dup2(fd, STDIN_FILENO);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0],
	    strerror(errno));
	_exit(127);
}

/* Has the other end of FD gone within MS milliseconds? */
static int
hung_up(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Runs ARGV in a session of its own, so that no terminal can be asked
 * anything, until it ends or LINE, the socket to our parent, is closed: then
 * the whole group is ended. What the parent held locked stays locked. */
static void
keep(const char *const argv[], int line)
{
	int64_t start, took, end;
	pid_t pid;
	int ms = 1, ws;

	start = mr_now_ms();
	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	pid = fork();
	if (pid == 0)
		become(argv);
	if (pid == -1)
		_exit(127);
	while (waitpid(pid, &ws, WNOHANG) == 0) {
		if (hung_up(line, ms)) {
			kill(0, SIGTERM);
			end = mr_now_ms() + 2000;
			while (waitpid(pid, &ws, WNOHANG) == 0 &&
			    mr_now_ms() < end)
				poll(NULL, 0, 10);
			kill(0, SIGKILL);
		}
		/* a quick git is not held up, a slow one not looked at much */
		took = mr_now_ms() - start;
		ms = took < 160 ? 1 + (int)took / 8 : 20;
	}
	_exit(WIFSIGNALED(ws) ? 128 + WTERMSIG(ws) : WEXITSTATUS(ws));
}

/* ---- what git says ---- */

/* Takes what is in FD: into OUT (kept whole) or SAID (its end is kept).
 * Returns 0 at the end of file. */
static int
take(struct mr_git *g, int fd, int is_out)
{
	char buf[4096];
	size_t room, n;
	ssize_t got;

	got = read(fd, buf, sizeof(buf));
	if (got == -1 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (got <= 0)
		return 0;
	n = (size_t)got;
	if (is_out) {
		if (g->len + n > OUT_MAX)
			return 1;
		g->out = mr_realloc(g->out, g->len + n + 1);
		memcpy(g->out + g->len, buf, n);
		g->len += n;
		g->out[g->len] = '\0';
		return 1;
	}
	room = sizeof(g->said) - 1;
	if (n > room)
		n = room;
	if (g->nsaid + n > room) {
		memmove(g->said, g->said + (g->nsaid + n - room), room - n);
		g->nsaid = room - n;
	}
	memcpy(g->said + g->nsaid, buf + got - n, n);
	g->nsaid += n;
	g->said[g->nsaid] = '\0';
	return 1;
}

static int
begins(const char *s, const char *word)
{
	return strncmp(s, word, strlen(word)) == 0;
}

/* Is the line progress or advice rather than the reason of a failure? */
static int
is_chatter(const char *s)
{
	static const char *const words[] = { "remote: Enumerating",
	    "remote: Counting", "remote: Compressing", "remote: Total",
	    "Receiving objects", "Resolving deltas", "Unpacking objects",
	    "From ", " * ", "warning: ", "Updating files", "@" };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (begins(s, words[i]))
			return 1;
	return s[strspn(s, " ")] == '\0';
}

/* the first line of SAID that gives a reason goes to WHY */
static void
find_why(struct mr_git *g)
{
	char line[sizeof(g->why)];
	const char *s;
	size_t i, n;

	g->why[0] = '\0';
	s = g->said;
	if (g->nsaid == sizeof(g->said) - 1)	/* it begins inside a line */
		s += strcspn(s, "\r\n");
	for (; *s != '\0' && g->why[0] == '\0'; s += n) {
		n = strcspn(s, "\r\n");
		for (i = 0; i < n && i < sizeof(line) - 1; i++)
			line[i] = s[i] >= 0x20 && s[i] < 0x7f ? s[i] : '?';
		line[i] = '\0';
		n += s[n] != '\0';
		if (is_chatter(line))
			continue;
		i = begins(line, "fatal: ") || begins(line, "error: ") ? 7 : 0;
		memcpy(g->why, line + i, strlen(line + i) + 1);
	}
	if (g->why[0] == '\0')
		snprintf(g->why, sizeof(g->why), "git said nothing");
}

/* does one of the LIST, NULL at its end, occur in what git said? */
static int
said(const struct mr_git *g, const char *const list[])
{
	for (; *list != NULL; list++)
		if (strstr(g->said, *list) != NULL)
			return 1;
	return 0;
}

/* the status for a git that failed, by its words (LC_ALL is C) */
static int
verdict(const struct mr_git *g)
{
	static const char *const unfit[] = { "cannot start ",
	    "' not allowed", "nable to find remote helper",
	    "No space left on device", "Disk quota exceeded",
	    "Read-only file system", "insufficient permission",
	    "Host key verification failed", "dubious ownership",
	    "nable to create ", "unknown option", NULL };
	static const char *const no[] = { "not our ref",
	    "unadvertised object", "find remote ref", "no such remote ref",
	    "Repository not found", "' not found",
	    "not appear to be a git repository", "prompts disabled",
	    "Authentication failed", "Permission denied (",
	    "ccess denied", "returned error: 401", "returned error: 403",
	    "returned error: 404", "returned error: 410",
	    "dumb http transport", "not support shallow",
	    "does not match index", "is corrupt", NULL };

	return said(g, unfit) ? MR_UNFIT : said(g, no) ? MR_NO : MR_AGAIN;
}

/* ---- running it ---- */

static volatile sig_atomic_t stopped;

static void
stop(int sig)
{
	stopped = sig;
}

/* the signals that end us, caught while git runs so that it ends first */
static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
enum { NENDS = sizeof(ends) / sizeof(ends[0]) };

static void
catch_ends(struct sigaction old[NENDS])
{
	struct sigaction sa;
	size_t i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = stop;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < NENDS; i++) {
		sigaction(ends[i], NULL, &old[i]);
		if (old[i].sa_handler != SIG_IGN)
			sigaction(ends[i], &sa, NULL);
	}
}

static void
release_ends(struct sigaction old[NENDS])
{
	size_t i;

	for (i = 0; i < NENDS; i++)
		sigaction(ends[i], &old[i], NULL);
	if (stopped)
		raise(stopped);
}

/* Reads both pipes until the keeper closes LINE, time is up, or nothing was
 * heard for SILENT seconds (0: any time); 0 or the status, with WHY. */
static int
listen_to(struct mr_git *g, int line, const int fd[2], unsigned seconds,
    unsigned silent)
{
	struct pollfd p[3] = { { .fd = line, .events = POLLIN },
	    { .fd = fd[0], .events = POLLIN },
	    { .fd = fd[1], .events = POLLIN } };
	int64_t end, heard, now;
	size_t i;
	int n;

	heard = mr_now_ms();
	end = heard + (int64_t)seconds * 1000;
	while (!stopped) {
		n = poll(p, 3, 100);
		now = mr_now_ms();
		for (i = 1; n > 0 && i < 3; i++) {
			if (p[i].revents == 0)
				continue;
			heard = now;
			if (!take(g, p[i].fd, i == 1))
				p[i].fd = -1;
		}
		if (n > 0 && p[0].revents != 0 && p[1].revents == 0 &&
		    p[2].revents == 0)
			return MR_OK;
		if (now >= end) {
			snprintf(g->why, sizeof(g->why),
			    "stopped after %u s", seconds);
			return MR_AGAIN;
		}
		if (silent > 0 && now - heard >= (int64_t)silent * 1000) {
			snprintf(g->why, sizeof(g->why),
			    "stopped: nothing was heard for %u s", silent);
			return MR_AGAIN;
		}
	}
	snprintf(g->why, sizeof(g->why), "stopped by a signal");
	return MR_AGAIN;
}

/* a pipe or socket pair whose ends no other child inherits */
static void
make_pair(int fd[2], int is_socket)
{
	if ((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) :
	    pipe(fd)) == -1)
		err(MR_UNFIT, "pipe");
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	fcntl(fd[1], F_SETFD, FD_CLOEXEC);
}

int
mr_git(struct mr_git *g, const char *url, const char *const argv[],
    unsigned seconds, unsigned silent)
{
	struct sigaction old[NENDS];
	struct mr_err e;
	int line[2], out[2], er[2], fd[2], status, ws = 0;
	pid_t pid;

	memset(g, 0, sizeof(*g));
	g->out = mr_strdup("");
	if (url != NULL && mr_git_url(url, &e) == -1) {
		snprintf(g->why, sizeof(g->why), "%.255s", e.text);
		return MR_UNFIT;
	}
	/* a redirect may not lead to a transport that the URL may not name */
	if (allow_is_ours)
		setenv("GIT_ALLOW_PROTOCOL", url != NULL &&
		    (begins(url, "http:") || begins(url, "git:")) ?
		    "file:git:http:https:ssh" : "file:https:ssh", 1);
	make_pair(line, 1);
	make_pair(out, 0);
	make_pair(er, 0);
	stopped = 0;
	catch_ends(old);
	pid = fork();
	if (pid == -1)
		err(MR_UNFIT, "fork");
	if (pid == 0) {
		close(line[0]);
		close(out[0]);
		close(er[0]);
		dup2(out[1], STDOUT_FILENO);
		dup2(er[1], STDERR_FILENO);
		keep(argv, line[1]);
	}
	close(line[1]);
	close(out[1]);
	close(er[1]);
	fd[0] = out[0];
	fd[1] = er[0];
	status = listen_to(g, line[0], fd, seconds, silent);
	close(line[0]);
	while (waitpid(pid, &ws, 0) == -1 && errno == EINTR)
		;
	close(out[0]);
	close(er[0]);
	release_ends(old);
	g->exit = WIFEXITED(ws) ? WEXITSTATUS(ws) : 128 + WTERMSIG(ws);
	if (status != MR_OK || g->exit == 0)
		return status;
	find_why(g);
	return verdict(g);
}
