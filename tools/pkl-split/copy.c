/* One pass over a file: one thread hashes what the other reads and writes. */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mr.h"
#include "split.h"

/* small enough that the second thread finds a slot still in the cache */
enum { SLOTS = 8, SLOT = 1 << 18 };

struct copy {
	pthread_t		 thread;
	pthread_mutex_t		 lock;
	pthread_cond_t		 turn;
	struct mr_sha256	*hash;
	unsigned long		 filled, hashed;	/* slots ever used */
	int			 end, sync;
	size_t			 len[SLOTS];
	char			 buf[SLOTS][SLOT];
};

/* the thread: hashes slots in order until the end is said */
static void *
hasher(void *arg)
{
	struct copy *c = arg;
	size_t i;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (c->hashed == c->filled && !c->end)
			pthread_cond_wait(&c->turn, &c->lock);
		if (c->hashed == c->filled)
			break;
		i = c->hashed % SLOTS;
		pthread_mutex_unlock(&c->lock);
		mr_sha256_add(c->hash, c->buf[i], c->len[i]);
		pthread_mutex_lock(&c->lock);
		c->hashed++;
		pthread_cond_signal(&c->turn);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct copy *
copy_new(void)
{
	const char *sync;
	struct copy *c;

	c = mr_malloc(sizeof(*c));
	sync = getenv("MR_SYNC");
	c->sync = sync == NULL || strcmp(sync, "0") != 0;
	c->filled = c->hashed = 0;
	c->end = 0;
	c->hash = mr_sha256_new();
	if (pthread_mutex_init(&c->lock, NULL) != 0 ||
	    pthread_cond_init(&c->turn, NULL) != 0 ||
	    pthread_create(&c->thread, NULL, hasher, c) != 0)
		errx(MR_UNFIT, "cannot start a thread");
	return c;
}

/* The disk writes this part while the next one is read, so that the fsync to
 * come is short. It is a hint: where nothing comes of it, nothing is lost. */
static void
settle(int fd)
{
#ifdef POSIX_FADV_DONTNEED
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#else
	(void)fd;
#endif
}

int64_t
copy_some(struct copy *c, int in, int out, uint64_t n)
{
	uint64_t done;
	ssize_t got;
	size_t i;

	for (done = 0; done < n; done += (uint64_t)got) {
		pthread_mutex_lock(&c->lock);
		while (c->filled - c->hashed == SLOTS)
			pthread_cond_wait(&c->turn, &c->lock);
		pthread_mutex_unlock(&c->lock);
		i = c->filled % SLOTS;
		got = mr_read(in, c->buf[i], n - done < SLOT ?
		    (size_t)(n - done) : SLOT);
		if (got == -1)
			return -1;
		if (got == 0)
			break;
		c->len[i] = (size_t)got;
		pthread_mutex_lock(&c->lock);
		c->filled++;
		pthread_cond_signal(&c->turn);
		pthread_mutex_unlock(&c->lock);
		if (out != -1 && mr_write(out, c->buf[i], (size_t)got) == -1)
			return -1;
	}
	if (out != -1 && c->sync)
		settle(out);
	return (int64_t)done;
}

void
copy_end(struct copy *c, char hex[MR_HEX])
{
	pthread_mutex_lock(&c->lock);
	c->end = 1;
	pthread_cond_signal(&c->turn);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->turn);
	mr_sha256_end(c->hash, hex);
	free(c);
}
