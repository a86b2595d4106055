/* Hashes the files of a release, one model a thread. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "release-build.h"

enum { CHUNK = 1 << 17, THREADS_MAX = 64 };

struct work {
	struct release	*r;
	size_t		 next;
	pthread_mutex_t	 lock;
};

/* Adds one piece to the digest of the whole; its own is kept. */
static char *
add(const struct release *r, struct piece *p, struct mr_sha256 *whole,
    char *buf)
{
	struct mr_sha256 *h;
	uint64_t n = 0;
	ssize_t got;
	char *path, *fault = NULL;
	int fd;

	path = mr_fmt("%s/%s", r->tmp, p->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	h = mr_sha256_new();
	while (fd != -1 && (got = mr_read(fd, buf, CHUNK)) != 0) {
		if (got == -1)
			break;
		mr_sha256_add(h, buf, (size_t)got);
		mr_sha256_add(whole, buf, (size_t)got);
		n += (uint64_t)got;
	}
	if (fd == -1 || got == -1)
		fault = mr_fmt("%s: %s", p->name, strerror(errno));
	else if (n != p->size)
		fault = mr_fmt("%s: %llu bytes, wanted %llu", p->name,
		    (unsigned long long)n, (unsigned long long)p->size);
	if (fd != -1)
		close(fd);
	mr_sha256_end(h, p->sha256);
	free(path);
	return fault;
}

/* Does NAME.sha256, which ns-rename wrote, say what the record says? */
static char *
check_marker(const struct release *r, const struct model *m)
{
	char *path, *text, *want, *fault = NULL;
	struct mr_err e;
	size_t n;

	path = mr_fmt("%s/%s_driving_tinygrad.pkl.sha256", r->tmp, m->new);
	want = mr_fmt("%s  %s_driving_tinygrad.pkl\n", m->sha256, m->new);
	text = mr_slurp(path, 1024, &n, &e);
	if (text == NULL)
		fault = mr_strdup(e.text);
	else if (strcmp(text, want) != 0)
		fault = mr_fmt("%s_driving_tinygrad.pkl.sha256: says %.64s, "
		    "its record %s", m->new, text, m->sha256);
	free(text);
	free(want);
	free(path);
	return fault;
}

/* all files of one model: what is wrong with them, or NULL */
static char *
check(const struct release *r, struct model *m, char *buf)
{
	struct mr_sha256 *whole;
	char hex[MR_HEX], *fault = NULL;
	size_t i;

	whole = mr_sha256_new();
	for (i = 0; i < m->npieces && fault == NULL; i++)
		fault = add(r, &m->piece[i], whole, buf);
	mr_sha256_end(whole, hex);
	if (fault == NULL && strcmp(hex, m->sha256) != 0)
		fault = mr_fmt("sha256 is %s, its record says %s", hex,
		    m->sha256);
	if (fault == NULL && m->parts)
		fault = check_marker(r, m);
	return fault;
}

static void *
worker(void *arg)
{
	struct work *w = arg;
	struct model *m;
	char *buf;

	buf = mr_malloc(CHUNK);
	pthread_mutex_lock(&w->lock);
	while (w->next < w->r->n) {
		m = &w->r->model[w->next++];
		pthread_mutex_unlock(&w->lock);
		m->fault = check(w->r, m, buf);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	free(buf);
	return NULL;
}

static void
run(struct release *r)
{
	pthread_t thread[THREADS_MAX];
	struct work w = { .r = r, .next = 0 };
	size_t i, n;
	long cores;

	/* OpenSSL is set up once, before threads could race for it */
	mr_sha256_end(mr_sha256_new(), NULL);
	cores = sysconf(_SC_NPROCESSORS_ONLN);
	n = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
	if (pthread_mutex_init(&w.lock, NULL) != 0)
		errx(MR_UNFIT, "cannot start a thread");
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, worker, &w) != 0)
			break;
	if (i == 0)
		errx(MR_UNFIT, "cannot start a thread");
	while (i-- > 0)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&w.lock);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Says which files of the release are of no set: stale parts, a whole file
 * beside its parts. */
static int
check_strays(const struct release *r)
{
	struct dirent *d;
	char **names, *text, **hit;
	const char *name;
	size_t i, k, n = 0, cap = 2;
	int status = MR_OK;
	DIR *dir;

	for (i = 0; i < r->n; i++)
		cap += r->model[i].npieces + 1;
	names = mr_malloc(cap * sizeof(*names));
	names[n++] = mr_strdup("multipart.json");
	names[n++] = mr_fmt("model_names_%s.json", r->version);
	for (i = 0; i < r->n; i++) {
		for (k = 0; k < r->model[i].npieces; k++)
			names[n++] = mr_strdup(r->model[i].piece[k].name);
		if (r->model[i].parts)
			names[n++] = mr_fmt("%s_driving_tinygrad.pkl.sha256",
			    r->model[i].new);
	}
	qsort(names, n, sizeof(*names), by_text);
	dir = opendir(r->tmp);
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		name = d->d_name;
		text = d->d_name;
		hit = bsearch(&text, names, n, sizeof(*names), by_text);
		if (hit != NULL || mr_litter(name) || strcmp(name, ".") == 0 ||
		    strcmp(name, "..") == 0)
			continue;
		warnx("%s: is of no upload set: remove its like from %s", name,
		    r->ready);
		status = MR_NO;
	}
	if (dir != NULL)
		closedir(dir);
	for (i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return status;
}

int
hash_all(struct release *r)
{
	int status = MR_OK;
	size_t i;

	run(r);
	for (i = 0; i < r->n; i++) {
		if (r->model[i].fault == NULL)
			continue;
		warnx("%s: %s: make ready/%s, or force/%s if that fails",
		    r->model[i].id, r->model[i].fault, r->model[i].id,
		    r->model[i].id);
		status = MR_NO;
	}
	return mr_worse(status, check_strays(r));
}
