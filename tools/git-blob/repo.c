/* One repository: opening it, its commit, the bytes of its blobs. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <git2.h>

#include "git-blob.h"

/* why the last libgit2 call failed */
const char *
git_why(void)
{
	const git_error *e;

	e = git_error_last();
	return e != NULL && e->message != NULL ? e->message : "no reason given";
}

/* Says why libgit2 would not open the repository. */
static int
refused(const struct repo *r, int rc)
{
	const git_error *e;
	char *real;

	e = git_error_last();
	/* libgit2 1.5 fails on the missing setting instead of the owner */
	if (rc == GIT_EOWNER || strstr(git_why(), "safe.directory") != NULL) {
		real = realpath(r->dir, NULL);
		warnx("%s: belongs to another user, so git does not trust it; "
		    "if you do: git config --global --add safe.directory "
		    "'%s'", r->dir, real != NULL ? real : r->dir);
		free(real);
		return MR_UNFIT;
	}
	if (rc == GIT_ENOTFOUND) {
		warnx("%s: not a git repository, wanted a clone or a bare "
		    "store", r->dir);
		return MR_UNFIT;
	}
	if (e != NULL && e->klass == GIT_ERROR_REPOSITORY) {
		warnx("%s: %s", r->dir, e->message);
		return MR_UNFIT;
	}
	warnx("%s: corrupt repository: %s", r->dir, git_why());
	return MR_NO;
}

int
repo_open(struct repo *r)
{
	/* extensions that change nothing for who only reads objects */
	static const char *ok[] = { "partialclone", "worktreeconfig",
	    "preciousobjects", "relativeworktrees" };
	struct stat st;
	int rc;

	if (stat(r->dir, &st) == -1) {
		if (errno == ENOENT)
			return MR_OK;
		warn("%s", r->dir);
		return MR_UNFIT;
	}
	git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, ok,
	    sizeof(ok) / sizeof(ok[0]));
	rc = git_repository_open_ext(&r->git, r->dir,
	    GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
	if (rc < 0) {
		r->git = NULL;
		return refused(r, rc);
	}
	if (git_repository_odb(&r->odb, r->git) < 0) {
		warnx("%s: corrupt repository: %s", r->dir, git_why());
		return MR_NO;
	}
	return MR_OK;
}

void
repo_close(struct repo *r)
{
	git_commit_free(r->commit);
	git_odb_free(r->odb);
	git_repository_free(r->git);
	free(r->want);
	free(r->shown);
	free(r->url);
	free(r->dir);
}

/* Do the pack at PATH and its index, which ends with the pack's checksum and
 * its own, belong together? libgit2 passes over such a pack in silence. */
static int
pack_ok(const char *path)
{
	unsigned char sum[20], wanted[40];
	char *idx;
	int fd, ok = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd != -1 && lseek(fd, -20, SEEK_END) != -1)
		ok = mr_read(fd, sum, 20) == 20;
	if (fd != -1)
		close(fd);
	idx = mr_fmt("%.*s.idx", (int)(strlen(path) - strlen(".pack")), path);
	fd = open(idx, O_RDONLY | O_CLOEXEC);
	if (fd != -1 && lseek(fd, -40, SEEK_END) != -1)
		ok = ok && mr_read(fd, wanted, 40) == 40 &&
		    memcmp(sum, wanted, 20) == 0;
	else if (fd != -1 || errno != ENOENT)
		ok = 0;	/* a pack without an index is not in use yet */
	if (fd != -1)
		close(fd);
	free(idx);
	return ok;
}

int
repo_broken(struct repo *r)
{
	struct dirent *d;
	char *dir, *path;
	size_t n;
	DIR *h;
	int broken = 0;

	dir = mr_fmt("%sobjects/pack", git_repository_commondir(r->git));
	h = opendir(dir);
	while (h != NULL && !broken && (d = readdir(h)) != NULL) {
		n = strlen(d->d_name);
		if (mr_litter(d->d_name) || n < 5 ||
		    strcmp(d->d_name + n - 5, ".pack") != 0)
			continue;
		path = mr_fmt("%s/%s", dir, d->d_name);
		broken = !pack_ok(path);
		if (broken)
			warnx("%s: corrupt repository: %s does not match its "
			    "index; a store can be removed, it is fetched anew",
			    r->dir, d->d_name);
		free(path);
	}
	if (h != NULL)
		closedir(h);
	free(dir);
	return broken;
}

int
repo_commit(struct repo *r)
{
	git_object *o;
	int rc;

	rc = git_object_lookup(&o, r->git, &r->id, GIT_OBJECT_ANY);
	if (rc == GIT_ENOTFOUND)
		return repo_broken(r) ? BAD : ABSENT;
	if (rc < 0) {
		warnx("%s: %s: corrupt repository: %s", r->dir, r->ref,
		    git_why());
		return BAD;
	}
	if (git_object_type(o) != GIT_OBJECT_COMMIT) {
		warnx("%s: %s: is a %s, wanted a commit", r->dir, r->ref,
		    git_object_type2string(git_object_type(o)));
		git_object_free(o);
		return BAD;
	}
	r->commit = (git_commit *)o;
	return FOUND;
}

void
repo_want(struct repo *r, const git_oid *oid)
{
	size_t i;

	for (i = 0; i < r->nwant; i++)
		if (git_oid_equal(&r->want[i], oid))
			return;
	r->want = mr_realloc(r->want, (r->nwant + 1) * sizeof(*r->want));
	r->want[r->nwant++] = *oid;
}

int
repo_size(struct repo *r, const git_oid *oid, uint64_t *size,
    struct mr_err *e)
{
	git_object_t type;
	size_t len;
	int rc;

	rc = git_odb_read_header(&len, &type, r->odb, oid);
	if (rc == GIT_ENOTFOUND) {
		repo_want(r, oid);
		return WAIT;
	}
	if (rc < 0) {
		mr_fail(e, "corrupt repository: %s", git_why());
		return BAD;
	}
	if (type != GIT_OBJECT_BLOB) {
		mr_fail(e, "corrupt repository: object is a %s, wanted a blob",
		    git_object_type2string(type));
		return BAD;
	}
	*size = len;
	return FOUND;
}

int
repo_text(struct repo *r, const git_oid *oid, char *buf, size_t max,
    struct mr_err *e)
{
	git_blob *b;
	uint64_t size;
	int rc;

	rc = repo_size(r, oid, &size, e);
	if (rc != FOUND)
		return rc;
	if (size >= max) {
		mr_fail(e, "is %llu bytes long, wanted fewer than %zu",
		    (unsigned long long)size, max);
		return BAD;
	}
	if (git_blob_lookup(&b, r->git, oid) < 0) {
		mr_fail(e, "corrupt repository: %s", git_why());
		return BAD;
	}
	memcpy(buf, git_blob_rawcontent(b), (size_t)size);
	buf[size] = '\0';
	if (strlen(buf) != size) {
		mr_fail(e, "has a NUL byte, wanted text");
		rc = BAD;
	}
	git_blob_free(b);
	return rc;
}

/* Copies FD to standard output; the bytes, or -1 when they cannot go there. */
static int64_t
copy(int fd)
{
	int64_t n = 0;
	ssize_t got;
	char *buf;

	buf = mr_malloc(MR_BUF);
	while ((got = mr_read(fd, buf, MR_BUF)) > 0) {
		if (mr_write(STDOUT_FILENO, buf, (size_t)got) == -1) {
			warn("standard output");
			n = -1;
			break;
		}
		n += got;
	}
	free(buf);
	return n;
}

/* A packed blob would be loaded whole by libgit2: git streams it, and the
 * windows keep it from having all of the pack mapped at once. */
static int
stream(struct repo *r, const struct entry *f)
{
	char oid[GIT_OID_HEXSZ + 1], *dir;
	const char *argv[] = { "git", NULL, "-c", "core.bigFileThreshold=1m",
	    "-c", "core.packedGitWindowSize=1m", "-c",
	    "core.packedGitLimit=8m", "cat-file", "blob", oid, NULL };
	int64_t n;
	pid_t pid;
	int fd[2], status;

	git_oid_tostr(oid, sizeof(oid), &f->oid);
	dir = mr_fmt("--git-dir=%s", git_repository_path(r->git));
	argv[1] = dir;
	if (pipe(fd) == -1)
		err(MR_UNFIT, "pipe");
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	fcntl(fd[1], F_SETFD, FD_CLOEXEC);
	pid = mr_spawn(argv, -2, fd[1], -1, 0);
	if (pid == -1)
		err(MR_UNFIT, "git");
	close(fd[1]);
	n = copy(fd[0]);
	close(fd[0]);	/* a git that still writes ends by SIGPIPE */
	status = mr_wait(pid, 0);
	free(dir);
	if (n == -1)
		return MR_UNFIT;
	if (status == 0 && (uint64_t)n == f->size)
		return MR_OK;
	warnx("%s:%s: corrupt repository: git cat-file ended with status %d "
	    "after %lld bytes, wanted %llu", r->ref, f->path, status,
	    (long long)n, (unsigned long long)f->size);
	return MR_NO;
}

int
repo_print(struct repo *r, const struct entry *f)
{
	git_blob *b;
	int rc;

	if (f->size > MR_BUF)
		return stream(r, f);
	if (git_blob_lookup(&b, r->git, &f->oid) < 0) {
		warnx("%s:%s: corrupt repository: %s", r->ref, f->path,
		    git_why());
		return MR_NO;
	}
	rc = mr_write(STDOUT_FILENO, git_blob_rawcontent(b), (size_t)f->size);
	git_blob_free(b);
	if (rc == 0)
		return MR_OK;
	warn("standard output");
	return MR_UNFIT;
}
