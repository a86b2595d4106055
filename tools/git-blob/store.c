/* The bare store that we make and only we fetch into, and its lock. */
#include <sys/file.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <git2.h>

#include "git-blob.h"

int
store_lock(struct repo *r)
{
	const struct timespec nap = { 0, 50000000 };
	char *name;
	int fd;

	name = mr_fmt("%s.lock", r->dir);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd == -1)
		warn("%s", name);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno == ENOLCK || errno == ENOTSUP)
			break;	/* this file system has none */
		if (errno == EWOULDBLOCK && mr_now_ms() < r->end) {
			nanosleep(&nap, NULL);
			continue;
		}
		if (errno == EINTR)
			continue;
		close(fd);
		fd = errno == EWOULDBLOCK ? -2 : -1;
		if (fd == -2)
			warnx("%s: another fetch still holds it after %u s",
			    name, r->seconds);
		else
			warn("%s: flock", name);
	}
	free(name);
	return fd;
}

/* removes DIR/NAME */
static void
drop(const char *dir, const char *name)
{
	char *path;

	path = mr_fmt("%s/%s", dir, name);
	unlink(path);
	free(path);
}

void
store_sweep(struct repo *r)
{
	static const char *const locks[] = { "config.lock", "shallow.lock",
	    "packed-refs.lock", "HEAD.lock" };
	struct dirent *d;
	char *path;
	size_t i;
	DIR *h;

	for (i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		drop(r->dir, locks[i]);
	path = mr_fmt("refs/model-rebuild/%s.lock", r->ref);
	drop(r->dir, path);
	free(path);
	path = mr_fmt("%s/objects/pack", r->dir);
	h = opendir(path);
	while (h != NULL && (d = readdir(h)) != NULL)
		if (strncmp(d->d_name, "tmp_", 4) == 0 ||
		    strncmp(d->d_name, ".tmp-", 5) == 0)
			drop(path, d->d_name);
	if (h != NULL)
		closedir(h);
	free(path);
}

int
store_make(struct repo *r)
{
	git_repository_init_options o;
	git_repository *g = NULL;
	git_config *c = NULL;
	const char *base;
	char *tmp;
	int rc;

	base = strrchr(r->dir, '/');
	base = base == NULL ? r->dir : base + 1;
	tmp = mr_fmt("%.*s.%s.tmp", (int)(base - r->dir), r->dir, base);
	/* an interrupted one is taken up: the lock is ours */
	drop(tmp, "config.lock");
	drop(tmp, "config");
	git_repository_init_options_init(&o,
	    GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR;
	o.initial_head = "main";
	rc = git_repository_init_ext(&g, tmp, &o);
	if (rc == 0)
		rc = git_repository_config(&c, g);
	if (rc == 0)
		rc = git_config_set_bool(c, "model-rebuild.store", 1);
	git_config_free(c);
	git_repository_free(g);
	if (rc < 0)
		warnx("%s: cannot be made: %s", tmp, git_why());
	else if (rename(tmp, r->dir) == -1)
		warn("%s", r->dir);
	else if (mr_sync_dir(r->dir) == -1)
		warn("%s: fsync of its folder", r->dir);
	else
		rc = 1;
	free(tmp);
	return rc == 1 ? repo_open(r) : MR_UNFIT;
}
