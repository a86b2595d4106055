/* What is missing comes from the server, by a git that can be stopped. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <git2.h>

#include "git-blob.h"

enum { ARGS = 32 };	/* words of a git command line but its refs */

/* ---- git fetch ---- */

/* Runs git with the words of OPTION, `fetch` among them, for REMOTE and the
 * words of REF; URL is what REMOTE means. Both lists end with NULL. */
static int
git_fetch(struct repo *r, struct mr_git *g, const char *url,
    const char *remote, const char *const option[], char *const ref[])
{
	static const char *const first[] = { "-c", "gc.auto=0", "-c",
	    "maintenance.auto=false", "-c", "core.bigFileThreshold=1m", "-c",
	    "fetch.writeCommitGraph=false" };
	static const char *const last[] = { "--no-tags",
	    "--no-write-fetch-head", "--no-recurse-submodules", "--progress",
	    "--" };
	const char **argv;
	unsigned left, silent;
	int64_t ms;
	char *dir;
	size_t i, n;
	int rc;

	for (n = 0; ref[n] != NULL; n++)
		;
	argv = mr_malloc((n + ARGS) * sizeof(*argv));
	dir = mr_fmt("--git-dir=%s", git_repository_path(r->git));
	n = 0;
	argv[n++] = "git";
	argv[n++] = dir;
	for (i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		argv[n++] = first[i];
	for (i = 0; option[i] != NULL; i++)
		argv[n++] = option[i];
	for (i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		argv[n++] = last[i];
	argv[n++] = remote;
	for (i = 0; ref[i] != NULL; i++)
		argv[n++] = ref[i];
	argv[n] = NULL;
	ms = r->end - mr_now_ms();
	left = ms <= 0 ? 1 : (unsigned)((ms + 999) / 1000);
	silent = r->seconds / 5 > 5 ? r->seconds / 5 : 5;
	rc = mr_git(g, url, argv, left, silent);
	if (rc != MR_OK && config_is_store(r->git))
		store_sweep(r);
	git_odb_refresh(r->odb);
	free(dir);
	free(argv);
	return rc;
}

/* is WORD in what git said? */
static int
said(const struct mr_git *g, const char *word)
{
	return strstr(g->said, word) != NULL;
}

/* Takes back what git noted of a filter at URL before it failed: believing
 * that URL gives what is missing, it would ask there without end. */
static void
unpromise(struct repo *r)
{
	static const char *const keys[] = { "promisor", "partialclonefilter" };
	git_config *c;
	char *name;
	size_t i;
	int rc;

	/* the repository's own view of it is older than git's change */
	name = mr_fmt("%sconfig", git_repository_commondir(r->git));
	rc = git_config_open_ondisk(&c, name);
	free(name);
	if (rc < 0)
		return;
	for (i = 0; i < 2; i++) {
		name = mr_fmt("remote.%s.%s", r->url, keys[i]);
		git_config_delete_entry(c, name);
		free(name);
	}
	git_config_free(c);
}

/* Fetches the commit by its id, under a ref that keeps it from being
 * collected. A user's own clone gets a plain fetch: depth and filter would
 * leave it shallow and partial. */
static int
ask_commit(struct repo *r, struct mr_git *g, int again)
{
	static const char *const thin[] = { "fetch", "--depth=1",
	    "--filter=blob:none", NULL };
	static const char *const whole[] = { "fetch", "--depth=1",
	    "--no-filter", "--refetch", NULL };
	static const char *const shallow[] = { "fetch", "--depth=1", NULL };
	static const char *const plain[] = { "fetch", NULL };
	char *ref[2];
	int ours, rc;

	ref[0] = mr_fmt("+%s:refs/model-rebuild/%s", r->ref, r->ref);
	ref[1] = NULL;
	ours = config_is_store(r->git);
	rc = git_fetch(r, g, r->url, r->url, again ? whole : ours ? thin :
	    git_repository_is_shallow(r->git) == 1 ? shallow : plain, ref);
	if (rc != MR_OK && ours && !again && (said(g, "shallow") ||
	    said(g, "filter"))) {
		/* a server without one or both, a dumb one for example */
		free(g->out);
		unpromise(r);
		rc = git_fetch(r, g, r->url, r->url, plain, ref);
	}
	free(ref[0]);
	return rc;
}

/* Says why the commit did not come. */
static void
blame(struct repo *r, const struct mr_git *g, int status)
{
	if (status == MR_NO && (said(g, "not our ref") ||
	    said(g, "remote ref")))
		warnx("%s: source lost: commit %s is not on the server; "
		    "wanted a clone that still has it (OPENPILOT, -C)",
		    r->shown, r->ref);
	else if (status == MR_NO && said(g, "unadvertised object"))
		warnx("%s: the server gives no commit by its id: %s; fetch "
		    "its branch into a clone of your own and name that "
		    "(OPENPILOT, -C)", r->shown, r->ref);
	else
		warnx("%s: commit %s was not fetched: %s", r->shown, r->ref,
		    g->why);
}

int
fetch_commit(struct repo *r)
{
	struct mr_git g;
	int fd, rc;

	fd = store_lock(r);
	if (fd < 0)
		return fd == -2 ? MR_AGAIN : MR_UNFIT;
	rc = MR_OK;
	if (r->git == NULL)
		rc = repo_open(r);	/* another may have made it */
	if (rc == MR_OK && r->git == NULL)
		rc = store_make(r);
	if (rc == MR_OK) {
		git_odb_refresh(r->odb);
		rc = repo_commit(r);
		if (rc == ABSENT) {
			if (config_is_store(r->git))
				store_sweep(r);
			rc = ask_commit(r, &g, 0);
			if (rc != MR_OK)
				blame(r, &g, rc);
			free(g.out);
			if (rc == MR_OK && (rc = repo_commit(r)) == ABSENT)
				warnx("%s: git fetch ended well without commit "
				    "%s", r->shown, r->ref);
		}
		if (rc == ABSENT || rc == BAD)
			rc = MR_NO;
	}
	close(fd);
	return rc;
}

/* ---- what a partial clone left out ---- */

/* Drops what is there by now; how much is still wanted. */
static size_t
still_wanted(struct repo *r)
{
	size_t i, n;

	git_odb_refresh(r->odb);
	for (i = n = 0; i < r->nwant; i++)
		if (!git_odb_exists(r->odb, &r->want[i]))
			r->want[n++] = r->want[i];
	return r->nwant = n;
}

/* Asks REMOTE for all that is wanted, by id and in one go. */
static int
ask_wanted(struct repo *r, struct mr_git *g, const char *remote)
{
	/* nothing is said of what is here: a server takes a commit that we
	 * have to mean its blobs too */
	static const char *const option[] = { "-c",
	    "fetch.negotiationAlgorithm=noop", "fetch", "--filter=blob:none",
	    NULL };
	char **ref, *url;
	size_t i;
	int rc;

	ref = mr_malloc((r->nwant + 1) * sizeof(*ref));
	for (i = 0; i < r->nwant; i++) {
		ref[i] = mr_malloc(GIT_OID_HEXSZ + 1);
		git_oid_tostr(ref[i], GIT_OID_HEXSZ + 1, &r->want[i]);
	}
	ref[i] = NULL;
	url = config_url(r->git, remote);
	rc = git_fetch(r, g, url != NULL ? url : remote, remote, option, ref);
	free(url);
	while (i > 0)
		free(ref[--i]);
	free(ref);
	return rc;
}

/* Tries the URL, then each promisor, until nothing is wanted. */
static int
ask_all(struct repo *r, char **remote)
{
	struct mr_git g;
	char oid[GIT_OID_HEXSZ + 1];
	int rc, worst = MR_OK;

	for (; *remote != NULL && still_wanted(r) > 0; remote++) {
		rc = ask_wanted(r, &g, *remote);
		if (rc == MR_NO && r->url != NULL && config_is_store(r->git) &&
		    strcmp(*remote, r->url) == 0 &&
		    said(&g, "unadvertised object")) {
			/* it gives commits, but no blobs, by their id */
			free(g.out);
			rc = ask_commit(r, &g, 1);
		}
		if (rc != MR_OK)
			warnx("%s: files of commit %s were not fetched: %s",
			    r->url != NULL && strcmp(*remote, r->url) == 0 ?
			    r->shown : *remote, r->ref, g.why);
		free(g.out);
		worst = mr_worse(worst, rc);
	}
	if (still_wanted(r) == 0)
		return MR_OK;
	if (repo_broken(r))
		return MR_NO;
	git_oid_tostr(oid, sizeof(oid), &r->want[0]);
	warnx("%s: %s: object %s is missing%s", r->dir, r->ref, oid,
	    worst == MR_OK ? ": corrupt repository" : "");
	return worst == MR_OK ? MR_NO : worst;
}

int
fetch_wanted(struct repo *r)
{
	char **names, **v;
	size_t n, k = 0;
	struct entry config = { .path = NULL };
	struct mr_err e;
	int fd, rc;

	find_path(r, ".lfsconfig", &config, &e);	/* -l will want it */
	free(config.path);
	names = config_promisors(r->git);
	for (n = 0; names[n] != NULL; n++)
		;
	v = mr_malloc((n + 2) * sizeof(*v));
	if (r->url != NULL && config_is_store(r->git))
		v[k++] = r->url;
	for (n = 0; names[n] != NULL; n++)
		if (k == 0 || strcmp(names[n], v[0]) != 0)
			v[k++] = names[n];
	v[k] = NULL;
	fd = k > 0 ? store_lock(r) : -1;
	if (k > 0 && fd < 0)
		rc = fd == -2 ? MR_AGAIN : MR_UNFIT;
	else {
		if (k > 0 && config_is_store(r->git) && still_wanted(r) > 0)
			store_sweep(r);
		rc = ask_all(r, v);
	}
	if (fd >= 0)
		close(fd);
	for (n = 0; names[n] != NULL; n++)
		free(names[n]);
	free(names);
	free(v);
	r->nwant = 0;
	return rc;
}
