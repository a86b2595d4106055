/* Who may be asked, and who gets credentials: the author of a commit picks
 * the host in its .lfsconfig, so only the site's list is trusted. */
#include <arpa/inet.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lfs-fetch.h"

/* printable ASCII without blanks, and not too long for a header line */
static int
plain(const char *s)
{
	size_t i;

	for (i = 0; s[i] != '\0'; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return 0;
	return i > 0 && i < 8192;
}

static int
is_loopback(const char *name)
{
	unsigned char a[16];

	if (strcmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return 1;
	return inet_pton(AF_INET, name, a) == 1 && a[0] == 127;
}

/* a part of a URL that libcurl took apart; the caller frees */
static char *
piece(CURLU *u, CURLUPart part)
{
	unsigned decode = part == CURLUPART_USER ? CURLU_URLDECODE : 0;
	char *s, *copy;

	if (curl_url_get(u, part, &s, decode) != CURLUE_OK)
		return NULL;
	copy = mr_strdup(s);
	curl_free(s);
	return copy;
}

int
origin_of(const char *url, struct origin *g, struct mr_err *e)
{
	char *port, *p;
	CURLUcode rc;
	CURLU *u;

	memset(g, 0, sizeof(*g));
	if (!plain(url))
		return mr_fail(e, "not a URL");
	/* libcurl would take "https:/host" and guess as well */
	if (strncasecmp(url, "https://", 8) != 0 &&
	    strncasecmp(url, "http://", 7) != 0)
		return mr_fail(e, "not https");
	u = curl_url();
	if (u == NULL)
		return mr_fail(e, "no memory");
	rc = curl_url_set(u, CURLUPART_URL, url, 0);
	if (rc != CURLUE_OK) {
		curl_url_cleanup(u);
		return mr_fail(e, "not a URL: %s", curl_url_strerror(rc));
	}
	g->name = piece(u, CURLUPART_HOST);
	g->user = piece(u, CURLUPART_USER);
	port = piece(u, CURLUPART_PORT);
	curl_url_cleanup(u);
	g->https = url[4] != ':';
	if (g->name == NULL || *g->name == '\0') {
		free(port);
		origin_free(g);
		return mr_fail(e, "not a URL: no host");
	}
	for (p = g->name; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	if (port != NULL && strcmp(port, g->https ? "443" : "80") == 0) {
		free(port);
		port = NULL;
	}
	g->host = port == NULL ? mr_strdup(g->name) :
	    mr_fmt("%s:%s", g->name, port);
	free(port);
	g->loopback = is_loopback(g->name);
	return 0;
}

void
origin_free(struct origin *g)
{
	free(g->host);
	free(g->name);
	free(g->user);
	memset(g, 0, sizeof(*g));
}

/* An entry without a port stands for every port of its host. */
int
listed(const struct origin *g)
{
	size_t i;

	for (i = 0; i < set.nhosts; i++)
		if (strcasecmp(set.host[i], g->host) == 0 ||
		    strcasecmp(set.host[i], g->name) == 0)
			return 1;
	return 0;
}

int
may_go(const struct origin *from, const struct origin *to)
{
	return to->https || (to->loopback && from->loopback && !from->https);
}

/* URL without "user:password@" and trailing slashes; the caller frees */
static char *
bare(const char *url)
{
	const char *host, *at;
	char *s;
	size_t n;

	host = strstr(url, "://") + 3;
	n = strcspn(host, "/?#");
	for (at = host + n; at > host && at[-1] != '@'; at--)
		;
	s = mr_fmt("%.*s%s", (int)(host - url), url, at);
	for (n = strlen(s); n > 0 && s[n - 1] == '/'; n--)
		s[n - 1] = '\0';
	return s;
}

void
endpoint_init(struct endpoint *ep, const char *text)
{
	char shown[MR_SHOWN];
	struct mr_err e;

	memset(ep, 0, sizeof(*ep));
	ep->max = MAX_BATCH;
	if (origin_of(text, &ep->origin, &e) == -1) {
		ep->url = mr_strdup(mr_show(shown, text, strlen(text)));
		ep->dead = mr_strdup(e.text);
	} else {
		ep->url = bare(text);
		if (!ep->origin.https && !ep->origin.loopback)
			ep->dead = mr_strdup("not https");
		else if (!listed(&ep->origin))
			ep->dead = mr_fmt("host %s is not on the list of "
			    "hosts (-H)", ep->origin.host);
	}
	ep->skipped = ep->dead != NULL;
}

/* ---- credentials ---- */

/* what git-credential(1) said of a host */
struct login {
	struct login	*next;
	char		*host;
	char		*pair;		/* "user:password", or NULL */
};

/* the value of KEY in lines "key=value", or NULL; the caller frees */
static char *
value_of(const char *text, const char *key)
{
	const char *p;
	size_t n;

	n = strlen(key);
	for (p = text; p != NULL && *p != '\0'; p++) {
		if (strncmp(p, key, n) == 0 && p[n] == '=')
			return mr_fmt("%.*s", (int)strcspn(p + n + 1, "\n"),
			    p + n + 1);
		p = strchr(p, '\n');
		if (p == NULL)
			break;
	}
	return NULL;
}

/* runs `git credential fill` with ASKED as its input; the caller frees */
static char *
fill(const char *asked)
{
	static const char *const argv[] = { "git", "credential", "fill", NULL };
	char *answer = NULL;
	ssize_t got = -1;
	int in[2], out[2];
	pid_t pid = -1;

	/* nobody may be there to answer a question */
	setenv("GIT_TERMINAL_PROMPT", "0", 1);
	setenv("GIT_ASKPASS", "", 1);
	setenv("GCM_INTERACTIVE", "never", 1);
	if (pipe(in) == -1)
		return NULL;
	if (pipe(out) == -1) {
		close(in[0]);
		close(in[1]);
		return NULL;
	}
	fcntl(in[1], F_SETFD, FD_CLOEXEC);
	fcntl(out[0], F_SETFD, FD_CLOEXEC);
	/* both ways fit into a pipe: nobody needs to drain them meanwhile */
	if (mr_write(in[1], asked, strlen(asked)) == 0)
		pid = mr_spawn(argv, in[0], out[1], -2, 1);
	close(in[0]);
	close(in[1]);
	close(out[1]);
	if (pid != -1 && mr_wait(pid, 30) == 0) {
		/* a helper that stays in the background may hold the pipe */
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		answer = mr_malloc(8192);
		got = read(out[0], answer, 8191);
		if (got >= 0)
			answer[got] = '\0';
	}
	close(out[0]);
	if (got < 0) {
		free(answer);
		return NULL;
	}
	return answer;
}

const char *
credentials(const struct origin *g)
{
	static struct login *logins;
	struct login *l;
	char *asked, *answer, *user, *password;

	for (l = logins; l != NULL; l = l->next)
		if (strcmp(l->host, g->host) == 0)
			return l->pair;
	if (!listed(g))
		return NULL;
	asked = mr_fmt("protocol=%s\nhost=%s\n%s%s%s\n",
	    g->https ? "https" : "http", g->host,
	    g->user != NULL ? "username=" : "",
	    g->user != NULL ? g->user : "", g->user != NULL ? "\n" : "");
	answer = fill(asked);
	free(asked);
	l = mr_malloc(sizeof(*l));
	l->host = mr_strdup(g->host);
	l->pair = NULL;
	l->next = logins;
	logins = l;
	if (answer == NULL)
		return NULL;
	user = value_of(answer, "username");
	password = value_of(answer, "password");
	if (user != NULL && password != NULL)
		l->pair = mr_fmt("%s:%s", user, password);
	free(user);
	free(password);
	free(answer);
	return l->pair;
}
