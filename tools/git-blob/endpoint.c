/* Where a commit's LFS objects are: one endpoint, and stores on this disk. */
#include <sys/stat.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <git2.h>

#include "git-blob.h"

enum {
	LFSCONFIG_MAX = 65536,	/* bytes */
	ALTERNATES_MAX = 1 << 20,
	DEPTH = 5		/* alternates of alternates, as git has it */
};

/* the stores that were printed, so that none is printed twice */
struct stores {
	char	**v;
	size_t	 n;
};

/* ---- URLs ---- */

static int
begins(const char *s, const char *word)
{
	return strncmp(s, word, strlen(word)) == 0;
}

/* file:///a%20b as a path; the caller frees */
static char *
unescape(const char *s)
{
	char *path, *p;
	int hi, lo;

	path = p = mr_strdup(s);
	for (; *s != '\0'; s++) {
		hi = *s == '%' ? mr_hex_digit(s[1]) : -1;
		lo = hi >= 0 ? mr_hex_digit(s[2]) : -1;
		if (lo >= 0 && (hi | lo) != 0) {
			*p++ = (char)(hi * 16 + lo);
			s += 2;
		} else {
			*p++ = *s;
		}
	}
	*p = '\0';
	return path;
}

/* The path that URL means on this machine, or NULL; the caller frees. As git
 * sees it, "a:b" is a host and a path unless a slash comes first. */
static char *
local_path(const char *url)
{
	if (begins(url, "file://localhost/"))
		return unescape(url + strlen("file://localhost"));
	if (begins(url, "file://"))
		return unescape(url + strlen("file://"));
	if (strstr(url, "://") != NULL ||
	    url[strcspn(url, ":/")] == ':')
		return NULL;
	return mr_strdup(url);
}

/* The LFS endpoint of a remote that is no path: https://HOST/PATH.git/info/
 * lfs. Users and passwords stay out of it, as do ports that are not http's;
 * NULL for an unknown kind of URL. The caller frees. */
static char *
derive(const char *url)
{
	const char *scheme = "https", *host, *path, *at;
	size_t hostlen, n;
	int web = 0;

	host = strstr(url, "://");
	if (host != NULL) {
		web = begins(url, "https:") || begins(url, "http:");
		if (begins(url, "http:"))
			scheme = "http";
		else if (!web && !begins(url, "ssh:") &&
		    !begins(url, "git:") && !begins(url, "git+ssh:") &&
		    !begins(url, "ssh+git:"))
			return NULL;
		host += 3;
		path = host + strcspn(host, "/");
	} else {
		host = url;
		path = host + strcspn(host, ":");
		for (at = path; at > host && at[-1] != '['; at--)
			;
		if (at > host)	/* git@[::1]:path */
			path = host + strcspn(host, "]") + 1;
	}
	for (at = path; at > host && at[-1] != '@'; at--)
		;
	host = at;
	hostlen = (size_t)(path - host);
	if (!web) {
		n = *host == '[' ? strcspn(host, "]") : 0;
		n += strcspn(host + n, ":/");
		if (n < hostlen)
			hostlen = n;
	}
	while (*path == '/' || *path == ':')
		path++;
	n = strcspn(path, "?#");
	while (n > 0 && path[n - 1] == '/')
		n--;
	if (hostlen == 0 || n == 0)
		return NULL;
	return mr_fmt("%s://%.*s/%.*s%s/info/lfs", scheme, (int)hostlen, host,
	    (int)n, path, n > 4 && strncmp(path + n - 4, ".git", 4) == 0 ?
	    "" : ".git");
}

/* ---- settings ---- */

/* Takes lfs.url, or else remote.origin.lfsurl, out of what git printed:
 * "name\nvalue\0" each; the last of a name wins. */
static char *
last_value(const char *text, size_t len)
{
	static const char *const names[] = { "lfs.url\n",
	    "remote.origin.lfsurl\n" };
	const char *s, *found[2] = { NULL, NULL };
	int i;

	for (s = text; s < text + len; s += strlen(s) + 1)
		for (i = 0; i < 2; i++)
			if (begins(s, names[i]))
				found[i] = s + strlen(names[i]);
	for (i = 0; i < 2; i++)
		if (found[i] != NULL && *found[i] != '\0')
			return mr_strdup(found[i]);
	return NULL;
}

/* *URL from the commit's own .lfsconfig, NULL where it has none. git itself
 * reads the blob, without includes: a status. */
static int
lfsconfig(struct repo *r, char **url)
{
	char oid[GIT_OID_HEXSZ + 1], *dir;
	const char *argv[] = { "git", NULL, "config", "--blob", oid,
	    "--no-includes", "-z", "--get-regexp",
	    "^(lfs\\.url|remote\\.origin\\.lfsurl)$", NULL };
	struct entry f = { .path = NULL };
	struct mr_git g;
	struct mr_err e;
	int rc, status = MR_OK;

	*url = NULL;
	while ((rc = find_path(r, ".lfsconfig", &f, &e)) == WAIT &&
	    status == MR_OK) {
		free(f.path);
		f.path = NULL;
		status = fetch_wanted(r);
	}
	free(f.path);
	if (rc == ABSENT || status != MR_OK)
		return status;
	if (rc == FOUND && f.size > LFSCONFIG_MAX) {
		mr_fail(&e, "is %llu bytes long, wanted at most %d",
		    (unsigned long long)f.size, LFSCONFIG_MAX);
		rc = BAD;
	}
	if (rc == BAD) {
		warnx("%s:.lfsconfig: %s", r->ref, e.text);
		return MR_NO;
	}
	git_oid_tostr(oid, sizeof(oid), &f.oid);
	dir = mr_fmt("--git-dir=%s", git_repository_path(r->git));
	argv[1] = dir;
	status = mr_git(&g, NULL, argv, r->seconds, 0);
	if (status == MR_OK) {
		*url = last_value(g.out, g.len);
	} else if (g.exit == 1 && strstr(g.said, "error: ") == NULL) {
		status = MR_OK;	/* it has neither name */
	} else {
		warnx("%s:.lfsconfig: git cannot read it: %s", r->ref, g.why);
		if (g.exit == 1 || g.exit == 128)
			status = MR_NO;
	}
	free(g.out);
	free(dir);
	return status;
}

/* ---- stores ---- */

/* Prints a store, once: its own even before it is there, others only then.
 * Takes DIR over. */
static int
print_store(struct stores *s, char *dir, int own)
{
	struct stat st;
	char *real;
	size_t i;

	real = realpath(dir, NULL);
	if (real != NULL || !own) {
		free(dir);
		dir = real;
	}
	for (i = 0; dir != NULL && i < s->n && strcmp(s->v[i], dir) != 0; i++)
		;
	if (dir == NULL || i < s->n || (stat(dir, &st) == 0 &&
	    !S_ISDIR(st.st_mode))) {
		free(dir);
		return MR_OK;
	}
	s->v = mr_realloc(s->v, (s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = dir;
	if (strpbrk(dir, "\r\n") != NULL) {
		warnx("store: its path has a line break, wanted none");
		return MR_UNFIT;
	}
	printf("store %s\n", dir);
	return MR_OK;
}

/* The LFS folder of a repository: lfs.storage, else in the folder that all
 * its worktrees share. The caller frees. */
static char *
lfs_folder(git_repository *g)
{
	char *storage, *dir;

	storage = config_text(g, "lfs.storage");
	if (storage != NULL && *storage == '/')
		return storage;
	dir = mr_fmt("%s%s", git_repository_commondir(g),
	    storage != NULL ? storage : "lfs");
	free(storage);
	return dir;
}

/* The siblings of the alternates of an objects folder, theirs too. */
static int
alternates(struct stores *s, const char *objects, int depth)
{
	struct mr_err e;
	char *name, *text, *line, *rest, *path;
	size_t len;
	int status = MR_OK;

	name = mr_fmt("%s/info/alternates", objects);
	text = mr_slurp(name, ALTERNATES_MAX, &len, &e);
	free(name);
	for (rest = text; rest != NULL && depth < DEPTH; ) {
		line = rest;
		rest = strchr(rest, '\n');
		if (rest != NULL)
			*rest++ = '\0';
		if (*line == '\0' || *line == '#' || *line == '"')
			continue;
		path = *line == '/' ? mr_strdup(line) :
		    mr_fmt("%s/%s", objects, line);
		status = mr_worse(status, print_store(s,
		    mr_fmt("%s/../lfs", path), 0));
		status = mr_worse(status, alternates(s, path, depth + 1));
		free(path);
	}
	free(text);
	return status;
}

/* The store of a repository at a path: asked of git where it may be opened,
 * else looked for where it usually is. */
static int
path_store(struct stores *s, const char *path)
{
	static const char *const usual[] = { "/.git/lfs", "/lfs", ".git/lfs" };
	git_repository *g;
	struct stat st;
	size_t i;
	char *dir;

	if (git_repository_open_ext(&g, path, GIT_REPOSITORY_OPEN_NO_SEARCH,
	    NULL) == 0) {
		dir = lfs_folder(g);
		git_repository_free(g);
		return print_store(s, dir, 0);
	}
	for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		dir = mr_fmt("%s%s", path, usual[i]);
		if (stat(dir, &st) == 0)
			return print_store(s, dir, 0);
		free(dir);
	}
	return MR_OK;
}

/* ---- the endpoint ---- */

/* Prints an endpoint that came from ORIGIN; nothing but a word may go into
 * the line. */
static int
endpoint_line(struct repo *r, const char *url, const char *origin)
{
	int hostile;

	if (is_word(url)) {
		printf("endpoint %s %s\n", url, origin);
		return MR_OK;
	}
	hostile = strcmp(origin, ".lfsconfig") == 0;
	warnx("%s%s%s: the URL has a blank, a control character or a letter "
	    "beyond ASCII, wanted none", hostile ? r->ref : r->dir,
	    hostile ? ":" : ": ", origin);
	return hostile ? MR_NO : MR_UNFIT;
}

/* A path of the repository's own remote counts from its top. */
static char *
from_top(struct repo *r, char *path)
{
	const char *top;
	char *whole;

	if (*path == '/')
		return path;
	top = git_repository_workdir(r->git);
	if (top == NULL)
		top = git_repository_path(r->git);
	whole = mr_fmt("%s/%s", top, path);
	free(path);
	return whole;
}

/* Prints the endpoint line, if there is one; *PATH is where lfs.url or the
 * remote name a repository on this machine instead, or NULL. */
static int
print_url(struct repo *r, char **path)
{
	const char *origin = "lfs.url";
	char *url, *remote, *derived;
	int rc = MR_OK;

	*path = NULL;
	url = config_text(r->git, "lfs.url");
	if (url == NULL) {
		origin = ".lfsconfig";
		rc = lfsconfig(r, &url);
	}
	if (url == NULL && rc == MR_OK) {
		origin = "lfs.url";
		url = config_text(r->git, "remote.origin.lfsurl");
	}
	if (url != NULL && strcmp(origin, "lfs.url") == 0)
		*path = local_path(url);
	if (url != NULL && *path == NULL)
		rc = mr_worse(rc, endpoint_line(r, url, origin));
	remote = config_url(r->git, "origin");
	if (remote == NULL && r->url != NULL)
		remote = config_instead(r->git, r->url);
	if (remote != NULL && *path == NULL)
		*path = local_path(remote);
	if (url == NULL && remote != NULL && *path == NULL && rc == MR_OK) {
		derived = derive(remote);
		if (derived != NULL)
			rc = endpoint_line(r, derived, "remote");
		free(derived);
	}
	free(remote);
	free(url);
	return rc;
}

int
print_endpoint(struct repo *r)
{
	struct stores s = { NULL, 0 };
	char *path, *objects;
	int status;

	status = print_url(r, &path);
	status = mr_worse(status, print_store(&s, lfs_folder(r->git), 1));
	objects = mr_fmt("%sobjects", git_repository_commondir(r->git));
	status = mr_worse(status, alternates(&s, objects, 0));
	free(objects);
	if (path != NULL) {
		path = from_top(r, path);
		status = mr_worse(status, path_store(&s, path));
	}
	free(path);
	while (s.n > 0)
		free(s.v[--s.n]);
	free(s.v);
	return status;
}
