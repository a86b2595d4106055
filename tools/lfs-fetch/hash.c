/* A digest that is computed beside the receiving and writing: hashing takes
 * as long as both of them. */
#include <err.h>
#include <pthread.h>
#include <stdlib.h>

#include "lfs-fetch.h"

struct hasher {
	pthread_t		 thread;
	pthread_mutex_t		 lock;
	pthread_cond_t		 turn;
	struct mr_sha256	*hash;
	const void		*buf;
	size_t			 n;		/* of BUF; 0: idle */
	int			 end;
};

static void *
work(void *arg)
{
	struct hasher *h = arg;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (h->n == 0 && !h->end)
			pthread_cond_wait(&h->turn, &h->lock);
		if (h->n == 0)
			break;
		pthread_mutex_unlock(&h->lock);
		mr_sha256_add(h->hash, h->buf, h->n);
		pthread_mutex_lock(&h->lock);
		h->n = 0;
		pthread_cond_signal(&h->turn);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

struct hasher *
hasher_new(void)
{
	struct hasher *h;

	h = mr_malloc(sizeof(*h));
	h->hash = mr_sha256_new();
	h->n = 0;
	h->end = 0;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->turn, NULL);
	if (pthread_create(&h->thread, NULL, work, h) != 0)
		errx(MR_UNFIT, "cannot start a thread");
	return h;
}

/* waits until the last buffer is done, then hands over N bytes of BUF */
static void
hand_over(struct hasher *h, const void *buf, size_t n, int end)
{
	pthread_mutex_lock(&h->lock);
	while (h->n != 0)
		pthread_cond_wait(&h->turn, &h->lock);
	h->buf = buf;
	h->n = n;
	h->end = end;
	pthread_cond_signal(&h->turn);
	pthread_mutex_unlock(&h->lock);
}

void
hasher_add(struct hasher *h, const void *buf, size_t n)
{
	if (n > 0)
		hand_over(h, buf, n, 0);
}

void
hasher_end(struct hasher *h, char hex[MR_HEX])
{
	hand_over(h, NULL, 0, 1);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->turn);
	pthread_mutex_destroy(&h->lock);
	mr_sha256_end(h->hash, hex);
	free(h);
}
