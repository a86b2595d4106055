/* Finds a model's sources in a commit: paths, blobs, endpoint and store. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <git2.h>

#include "git-blob.h"

static int
usage(FILE *f)
{
	fputs("usage: git-blob -C repo [-u url] [-t seconds] ref path ...\n"
	    "       git-blob -C repo [-u url] [-t seconds] -s format [-g] "
	    "ref\n"
	    "       git-blob -C repo [-u url] [-t seconds] -p ref path\n"
	    "       git-blob -C repo [-u url] [-t seconds] -l ref\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* is PATH what a tree can hold: no empty word, no "." and no ".."? */
static int
is_tree_path(const char *path)
{
	size_t n;

	for (; ; path += n + 1) {
		n = strcspn(path, "/");
		if (n == 0 || (path[0] == '.' && (n == 1 ||
		    (n == 2 && path[1] == '.'))))
			return 0;
		if (path[n] == '\0')
			return 1;
	}
}

static void
print_entry(const struct entry *f)
{
	char oid[GIT_OID_HEXSZ + 1];

	git_oid_tostr(oid, sizeof(oid), &f->oid);
	if (f->component != NULL)
		printf("%s ", f->component);
	printf("%s %06o %s %llu\n", f->path, f->mode, oid,
	    (unsigned long long)f->size);
}

/* Looks up the N paths until all they need is there. */
static int
find_paths(struct repo *r, char *const path[], int n, struct entry *f,
    int *rc, struct mr_err *e)
{
	int i, status = MR_OK;

	for (;;) {
		for (i = 0; i < n; i++) {
			free(f[i].path);
			memset(&f[i], 0, sizeof(f[i]));
			rc[i] = find_path(r, path[i], &f[i], &e[i]);
		}
		if (r->nwant == 0 || status != MR_OK)
			return status;
		status = fetch_wanted(r);
	}
}

/* The forms with paths: lines, or the bytes of one. */
static int
do_paths(struct repo *r, char *const path[], int n, int bytes)
{
	struct entry *f;
	struct mr_err *e;
	int *rc, i, status;

	f = mr_malloc((size_t)n * sizeof(*f));
	memset(f, 0, (size_t)n * sizeof(*f));
	e = mr_malloc((size_t)n * sizeof(*e));
	rc = mr_malloc((size_t)n * sizeof(*rc));
	status = find_paths(r, path, n, f, rc, e);
	for (i = 0; i < n; i++) {
		if (rc[i] == FOUND && bytes)
			status = mr_worse(status, repo_print(r, &f[i]));
		else if (rc[i] == FOUND)
			print_entry(&f[i]);
		else if (rc[i] == ABSENT)
			warnx("%s:%s: no such file in this commit", r->ref,
			    path[i]);
		else if (rc[i] == BAD)
			warnx("%s:%s: %s", r->ref, path[i], e[i].text);
		if (rc[i] != FOUND)
			status = mr_worse(status, MR_NO);
		free(f[i].path);
	}
	free(rc);
	free(e);
	free(f);
	return status;
}

/* The sources of a driving model: all of them or none. */
static int
do_sources(struct repo *r, const char *format, int big)
{
	struct list l = { NULL, 0 };
	struct mr_err e;
	size_t i;
	int rc, status = MR_OK;

	while ((rc = find_sources(r, format, big, &l, &e)) == WAIT &&
	    status == MR_OK) {
		list_clear(&l);
		status = fetch_wanted(r);
	}
	if (rc == ABSENT)
		warnx("%s: %s", r->ref, e.text);
	else if (rc == BAD)
		warnx("%s:%s", r->ref, e.text);
	if (rc != FOUND && status == MR_OK)
		status = MR_NO;
	for (i = 0; status == MR_OK && i < l.n; i++) {
		if (big && strstr(l.v[i].path, "/big_") == NULL)
			warnx("%s: big_%s.onnx is a symbolic link to the small "
			    "model, %s", r->ref, l.v[i].component,
			    l.v[i].path);
		print_entry(&l.v[i]);
	}
	list_clear(&l);
	return status;
}

/* PATH as a file:// URL: git runs elsewhere, and a promisor's name may not
 * begin with a slash. */
static char *
file_url(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,@~";
	char *url, *p;

	url = mr_malloc(strlen(path) * 3 + sizeof("file://"));
	p = url + snprintf(url, sizeof("file://"), "file://");
	for (; *path != '\0'; path++)
		if (strchr(plain, *path) != NULL)
			*p++ = *path;
		else
			p += snprintf(p, 4, "%%%02X", (unsigned char)*path);
	*p = '\0';
	return url;
}

/* Takes -u, where a path means a repository on this machine. */
static void
set_url(struct repo *r, const char *url)
{
	struct mr_err e;
	char *real = NULL;

	if (url == NULL || *url == '\0')
		return;
	if (mr_git_url(url, &e) == -1)
		errx(MR_UNFIT, "-u %s", e.text);
	if (strstr(url, "://") == NULL)
		real = realpath(url, NULL);
	r->url = real != NULL ? file_url(real) : mr_strdup(url);
	r->shown = real != NULL ? real : mr_git_shown(url);
}

/* Opens the repository, or makes it, and finds the commit in it. */
static int
open_commit(struct repo *r)
{
	int rc;

	rc = repo_open(r);
	if (rc != MR_OK)
		return rc;
	if (r->git == NULL && r->url == NULL) {
		warnx("%s: no such repository, wanted a clone, or -u URL to "
		    "make a store there", r->dir);
		return MR_UNFIT;
	}
	rc = r->git == NULL ? ABSENT : repo_commit(r);
	if (rc == ABSENT && r->url != NULL)
		return fetch_commit(r);
	if (rc == ABSENT)
		warnx("%s: commit %s is not there: fetch it into the clone, "
		    "or name its server with -u (REMOTE_URL)", r->dir,
		    r->ref);
	return rc == FOUND ? MR_OK : MR_NO;
}

/* -C without the slashes at its end: REPO.lock stands beside REPO */
static char *
folder(const char *dir)
{
	size_t n;

	for (n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
		;
	return mr_fmt("%.*s", (int)n, dir);
}

int
main(int argc, char *argv[])
{
	struct repo r = { .dir = NULL };
	const char *format = NULL, *url = NULL;
	uint64_t seconds = 600;
	int big = 0, bytes = 0, endpoint = 0, c, i, status;

	while ((c = getopt(argc, argv, "C:u:t:s:gplhV")) != -1)
		switch (c) {
		case 'C':
			r.dir = optarg;
			break;
		case 'u':
			url = optarg;
			break;
		case 't':
			if (mr_number(optarg, 1000000, &seconds) == -1 ||
			    seconds == 0)
				errx(MR_UNFIT, "-t %s: wanted seconds, 1 to "
				    "1000000", optarg);
			break;
		case 's':
			format = optarg;
			break;
		case 'g':
			big = 1;
			break;
		case 'p':
			bytes = 1;
			break;
		case 'l':
			endpoint = 1;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	argc -= optind;
	argv += optind;
	if (r.dir == NULL || *r.dir == '\0' || argc < 1 ||
	    (format != NULL) + bytes + endpoint > 1 ||
	    (big && format == NULL) || (bytes && argc != 2) ||
	    (format != NULL || endpoint ? argc != 1 : argc < 2))
		return usage(stderr);
	r.ref = argv[0];
	if (!mr_ref_ok(r.ref))
		errx(MR_UNFIT, "%.80s: not a commit, wanted 40 hex digits",
		    r.ref);
	if (format != NULL && !mr_format_ok(format))
		errx(MR_UNFIT, "-s %.80s: wanted split or supercombo", format);
	for (i = 1; i < argc; i++)
		if (!is_tree_path(argv[i]) || (!bytes && !is_word(argv[i])))
			errx(MR_UNFIT, "%.200s: not a path in a tree, or one "
			    "with a blank", argv[i]);
	r.dir = folder(r.dir);
	r.seconds = (unsigned)seconds;
	r.end = mr_now_ms() + (int64_t)seconds * 1000;
	set_url(&r, url);
	mr_git_env();
	git_libgit2_init();
	git_oid_fromstr(&r.id, r.ref);
	status = open_commit(&r);
	if (status == MR_OK && format != NULL)
		status = do_sources(&r, format, big);
	else if (status == MR_OK && endpoint)
		status = print_endpoint(&r);
	else if (status == MR_OK)
		status = do_paths(&r, argv + 1, argc - 1, bytes);
	repo_close(&r);
	git_libgit2_shutdown();
	return mr_finish(status);
}
