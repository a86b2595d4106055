/* An SSH session with one channel, on which the device's agent answers. */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "remote-compile.h"

static char	*raw_line(void), *after(char *, const char *);

enum {
	CONNECT = 10,		/* seconds for TCP */
	NOISE = 1000,		/* lines of a login shell before the agent */
	CHUNK = 128 << 10	/* bytes of one write */
};

static ssh_session session;
static ssh_channel channel;
static char in[MR_BUF];		/* what came, from `from` up to `upto` */
static size_t from, upto;

/* the last line of what the channel says on standard error, or "" */
static const char *
complaint(char *buf, size_t n)
{
	char *nl;
	int got;

	got = ssh_channel_read_nonblocking(channel, buf, (uint32_t)n - 1, 1);
	buf[got > 0 ? got : 0] = '\0';
	while ((nl = strrchr(buf, '\n')) != NULL) {
		if (nl[1] != '\0')
			return nl + 1;
		*nl = '\0';
	}
	return buf;
}

static void dropped(void) __attribute__((noreturn));
static void
dropped(void)
{
	char buf[4096], shown[MR_SHOWN];
	const char *said;

	said = channel == NULL ? "" : complaint(buf, sizeof(buf));
	if (said[0] != '\0')
		give_up(LINK, MR_AGAIN, "the link dropped: %s",
		    mr_show(shown, said, strlen(said)));
	give_up(LINK, MR_AGAIN, "the link dropped%s%s",
	    ssh_get_error(session)[0] == '\0' ? "" : ": ",
	    ssh_get_error(session));
}

/* ---- connecting ---- */

/* a socket to the address that was checked, and to no other */
static int
tcp(const struct device *d)
{
	struct pollfd p;
	socklen_t n = sizeof(int);
	int fd, one = 1, error = 0;
#ifdef TCP_USER_TIMEOUT
	unsigned ms = o.silence * 1000;
#endif

	fd = socket(d->sa.ss_family, SOCK_STREAM, 0);
	if (fd == -1)
		give_up(LINK, MR_AGAIN, "socket: %s", strerror(errno));
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
#ifdef TCP_USER_TIMEOUT
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
#endif
	if (connect(fd, (const struct sockaddr *)&d->sa, d->salen) == -1) {
		p.fd = fd;
		p.events = POLLOUT;
		if (errno != EINPROGRESS)
			error = errno;
		else if (poll(&p, 1, CONNECT * 1000) != 1)
			error = ETIMEDOUT;
		else
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
	}
	if (error != 0)
		give_up(LINK, MR_AGAIN, "cannot connect to %s port %u: %s",
		    d->address, d->port, strerror(error));
	return fd;
}

/* The library waits on after a server has hung up: its log tells. */
static void
on_log(int level, const char *function, const char *text, void *unused)
{
	(void)level;
	(void)function;
	(void)unused;
	if (strstr(text, "Too many authentication failures") != NULL)
		give_up(DEVICE, MR_UNFIT, "it was offered more keys than it "
		    "looks at: IdentityAgent none in ssh_config, or an agent "
		    "with fewer keys");
}

static void
authenticate(const struct device *d)
{
	phase("authentication", o.silence);
	ssh_set_log_callback(on_log);
	ssh_set_log_level(SSH_LOG_PACKET);
	/* without a passphrase, a key that has one would make it ask */
	switch (ssh_userauth_publickey_auto(session, NULL, "")) {
	case SSH_AUTH_SUCCESS:
		ssh_set_log_level(SSH_LOG_NOLOG);
		return;
	case SSH_AUTH_ERROR:
		if (!ssh_is_connected(session))
			dropped();
		/* FALLTHROUGH */
	default:
		give_up(DEVICE, MR_UNFIT, "no key was accepted for %s: "
		    "ssh-copy-id -p %u %s@%s", d->user, d->port, d->user,
		    d->host);
	}
}

/* The text that runs on the device; the caller frees. */
static char *
agent_text(size_t *n)
{
	struct mr_err e;
	char *bin, *dir, *path, *text;

	bin = mr_home_bin("remote-compile");
	dir = bin == NULL ? NULL : mr_home_device(bin);
	path = mr_fmt("%s/agent.sh", dir == NULL ? MR_LIBEXEC "/device" : dir);
	text = mr_slurp(path, MR_BUF, n, &e);
	if (text == NULL)
		give_up(MODEL, MR_UNFIT, "%s", e.text);
	free(path);
	free(dir);
	free(bin);
	return text;
}

/* Starts the agent: it is sent once and stays on the device, named by its
 * digest. */
static void
start_agent(void)
{
	const char *sync;
	static const char boot[] =
	    "cd / && [ -d \"$1\" ] || "
	    "{ echo; echo \"mr-unfit $1: there is no such folder\"; "
	    "exit; }; "
	    "d=$1/compiledmodels/jobs a=$1/compiledmodels/jobs/agent-$2.sh; "
	    "mkdir -p \"$d\" 2>/dev/null && [ -w \"$d\" ] || "
	    "{ echo; echo \"mr-unfit $d: cannot be written\"; exit; }; "
	    "echo; if [ \"$(stat -c %s \"$a\" 2>/dev/null)\" = $3 ]; "
	    "then echo mr-have; else echo mr-send; "
	    "head -c $3 >\"$a.$$\" && { [ $4 = 0 ] || sync; } && "
	    "mv -f \"$a.$$\" \"$a\" || exit; fi; "
	    "exec /bin/sh \"$a\" serve \"$1\" $4";
	char hex[MR_HEX], host[256], *text, *cmd, *root, *script, *cwd;
	char *line, *t;
	size_t n, i = 0;

	phase("login shell", o.silence);
	sync = getenv("MR_SYNC");
	text = agent_text(&n);
	mr_sha256_buf(text, n, hex);
	hex[16] = '\0';
	script = link_quote(boot);
	root = link_quote(o.root);
	cmd = mr_fmt("exec /bin/sh -c %s sh %s %s %zu %d", script, root, hex,
	    n, sync == NULL || strcmp(sync, "0") != 0);
	channel = ssh_channel_new(session);
	if (channel == NULL || ssh_channel_open_session(channel) != SSH_OK ||
	    ssh_channel_request_exec(channel, cmd) != SSH_OK)
		dropped();
	/* what a login shell prints is no answer, whatever it looks like */
	do {
		line = raw_line();
		if ((t = after(line, "mr-unfit")) != NULL)
			give_up(DEVICE, MR_UNFIT, "%s", t);
	} while (strcmp(line, "mr-have") != 0 &&
	    strcmp(line, "mr-send") != 0 && i++ < NOISE);
	if (i > NOISE)
		give_up(DEVICE, MR_UNFIT, "its login shell prints without end");
	if (strcmp(line, "mr-send") == 0)
		link_write(text, n);
	cwd = realpath(".", NULL);
	gethostname(host, sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	link_say("%s:%s", host, cwd == NULL ? "?" : cwd);
	link_expect("ready");
	free(cwd);
	free(cmd);
	free(root);
	free(script);
	free(text);
}

void
link_open(struct device *d)
{
	int fd;
	long seconds = o.silence;

	phase("connect", CONNECT + 1);
	fd = tcp(d);
	phase("key exchange", o.silence);
	session = policy_session(d);
	if (session == NULL)
		give_up(MODEL, MR_UNFIT, "libssh: cannot be set up");
	ssh_options_set(session, SSH_OPTIONS_FD, &fd);
	ssh_options_set(session, SSH_OPTIONS_TIMEOUT, &seconds);
	if (ssh_connect(session) != SSH_OK)
		dropped();
	hostkey_check(d, session);
	authenticate(d);
	start_agent();
}

void
link_close(void)
{
	phase("goodbye", o.silence);
	ssh_channel_send_eof(channel);
	ssh_channel_free(channel);
	ssh_disconnect(session);
	ssh_free(session);
}

/* ---- lines and bytes ---- */

/* the channel takes no more: it may have said why */
static void hung_up(void) __attribute__((noreturn));
static void
hung_up(void)
{
	for (;;)
		link_line();
}

/* Waits until the peer takes bytes; returns how many. The library's own wait
 * does not end when the peer hangs up while something of its is unread. */
static uint32_t
window(void)
{
	struct pollfd p = { ssh_get_fd(session), POLLIN, 0 };
	uint32_t n;

	while ((n = ssh_channel_window_size(channel)) == 0) {
		if (ssh_channel_poll(channel, 0) != 0)
			hung_up();
		if (ssh_channel_window_size(channel) == 0)
			poll(&p, 1, -1);
	}
	return n;
}

void
link_write(const void *buf, size_t n)
{
	const char *p = buf;
	size_t k, most;
	int put;

	for (; n > 0; p += put, n -= (size_t)put) {
		most = window();
		k = n < most ? n : most;
		k = k < CHUNK ? k : CHUNK;
		put = ssh_channel_write(channel, p, (uint32_t)k);
		if (put <= 0)
			hung_up();
		heard();
	}
}

void
link_say(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text) - 1 ||
	    memchr(text, '\n', (size_t)n) != NULL)
		give_up(MODEL, MR_UNFIT, "%.80s...: cannot be told to the "
		    "device", text);
	text[n] = '\n';
	link_write(text, (size_t)n + 1);
}

/* waits for more; what is there moves to the front */
static void
fill(void)
{
	int got;

	memmove(in, in + from, upto - from);
	upto -= from;
	from = 0;
	got = ssh_channel_read(channel, in + upto,
	    (uint32_t)(sizeof(in) - upto), 0);
	if (got <= 0)
		dropped();
	upto += (size_t)got;
	heard();
}

size_t
link_read(const char **bytes, size_t n)
{
	if (from == upto)
		fill();
	n = n > upto - from ? upto - from : n;
	*bytes = in + from;
	from += n;
	return n;
}

/* one line as it comes; it is cut off IN, so it lasts until the next call */
static char *
raw_line(void)
{
	char *nl, *line;

	while ((nl = memchr(in + from, '\n', upto - from)) == NULL) {
		if (upto - from == sizeof(in))
			give_up(DEVICE, MR_UNFIT, "it sent a line without end");
		fill();
	}
	line = in + from;
	*nl = '\0';
	from = (size_t)(nl + 1 - in);
	return line;
}

/* the rest of LINE if its first word is WORD */
static char *
after(char *line, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(line, word, n) != 0 || strchr(" ", line[n]) == NULL)
		return NULL;
	return line + n + (line[n] == ' ');
}

char *
link_line(void)
{
	char *line, *t;

	for (;;) {
		line = raw_line();
		if ((t = after(line, "note")) != NULL)
			fprintf(stderr, "%s: %s\n", o.id, mr_one_line(t));
		else if ((t = after(line, "unfit")) != NULL)
			give_up(DEVICE, MR_UNFIT, "%s", t);
		else if ((t = after(line, "again")) != NULL)
			give_up(DEVICE, MR_AGAIN, "%s", t);
		else if ((t = after(line, "pair 2")) != NULL)
			give_up(PAIR, MR_UNFIT, "%s", t);
		else if ((t = after(line, "pair 111")) != NULL)
			give_up(PAIR, MR_AGAIN, "%s", t);
		else if ((t = after(line, "link")) != NULL)
			give_up(LINK, MR_AGAIN, "%s", t);
		else if (after(line, "beat") == NULL)
			return line;
	}
}

char *
link_expect(const char *word)
{
	char *line, *rest, shown[MR_SHOWN];

	line = link_line();
	rest = after(line, word);
	if (rest == NULL)
		give_up(DEVICE, MR_UNFIT, "it answered \"%s\", wanted \"%s\"",
		    mr_show(shown, line, strlen(line)), word);
	return rest;
}

char *
link_quote(const char *s)
{
	char *q, *p;

	if (strchr(s, '\n') != NULL)
		give_up(MODEL, MR_UNFIT, "a name with a newline in it cannot "
		    "be told to the device");
	p = q = mr_malloc(strlen(s) * 4 + 3);
	*p++ = '\'';
	for (; *s != '\0'; s++)
		if (*s == '\'') {
			memcpy(p, "'\\''", 4);
			p += 4;
		} else {
			*p++ = *s;
		}
	*p++ = '\'';
	*p = '\0';
	return q;
}
