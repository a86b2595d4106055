/* What the files of pkl-join share. */
#ifndef PKL_JOIN_H
#define PKL_JOIN_H

#include "mr.h"

enum { PARTS_MAX = 100 };	/* .p00 to .p99 */

/* Where a set is: a path, or a URL, without suffix. */
struct source {
	const char	*base;
	int		 http;
	unsigned	 tries;		/* of each file, by http */
	long		 wait;		/* seconds in which nothing comes */
};
/* Who takes bytes; -1 ends the reading, and E says why. */
struct taker {
	int	(*take)(void *arg, const void *buf, size_t n,
		    struct mr_err *e);
	void	*arg;
};

/* ---- disk.c, http.c: one file of the set ----
 * All return MR_OK, MR_NO (there is no such file, or it cannot be right),
 * MR_AGAIN or MR_UNFIT. A size that is not told is UINT64_MAX. */

int	disk_size(const struct source *s, const char *suffix, uint64_t *size,
	    struct mr_err *e);
int	disk_read(const struct source *s, const char *suffix, uint64_t size,
	    const struct taker *t, struct mr_err *e);
/* 1: BASE is a URL that may be asked; 0: a path; -1: E says why not. */
int	http_is(const char *base, struct mr_err *e);
int	http_size(const struct source *s, const char *suffix, uint64_t *size,
	    struct mr_err *e);
int	http_read(const struct source *s, const char *suffix, uint64_t size,
	    const struct taker *t, struct mr_err *e);

/* ---- set.c: which files make the artifact ---- */

struct set {
	char		 hex[MR_HEX];	/* of its .sha256, or "" */
	uint64_t	 size;		/* of the artifact, or UINT64_MAX */
	uint64_t	 part[PARTS_MAX];
	size_t		 n;		/* parts, 0: whole */
};

/* Looks at what there is, as a device does. A status. */
int	set_find(const struct source *s, struct set *set, struct mr_err *e);
/* Hands over the artifact's bytes in order. A status. */
int	set_read(const struct source *s, const struct set *set,
	    const struct taker *t, struct mr_err *e);

#endif
