/* What the files of git-blob share: one repository, one commit. */
#ifndef GIT_BLOB_H
#define GIT_BLOB_H

#include <git2.h>

#include "mr.h"

struct repo {
	char		*dir;	/* -C, without slashes at its end */
	char		*url;	/* -u, or NULL */
	char		*shown;	/* the URL for messages: no credentials */
	const char	*ref;	/* the commit, 40 hex */
	int64_t		 end;	/* when fetching must have ended, ms */
	unsigned	 seconds;
	git_oid		 id;
	git_repository	*git;
	git_odb		*odb;
	git_commit	*commit;
	git_oid		*want;	/* objects that a lookup missed */
	size_t		 nwant;
};

/* one file of the commit */
struct entry {
	const char	*component;	/* or NULL */
	char		*path;		/* as it is in the tree */
	git_oid		 oid;
	uint64_t	 size;
	unsigned	 mode;
	unsigned	 chunk;		/* its number, where it is a chunk */
};
struct list {
	struct entry	*v;
	size_t		 n;
};

/* What a lookup comes to. WAIT: an object is missing and now in r->want. */
enum { FOUND, ABSENT, WAIT, BAD };

/* repo.c: opening, and what fits in memory */
const char	*git_why(void);
/* Opens r->dir; OK with r->git NULL where nothing has that name. */
int	repo_open(struct repo *r);
void	repo_close(struct repo *r);
/* Says which pack is damaged, if one is: then that is why things miss. */
int	repo_broken(struct repo *r);
/* FOUND sets r->commit; BAD has been said. */
int	repo_commit(struct repo *r);
/* Notes that OID is to be fetched. */
void	repo_want(struct repo *r, const git_oid *oid);
/* The size of a blob. */
int	repo_size(struct repo *r, const git_oid *oid, uint64_t *size,
	    struct mr_err *e);
/* The text of a blob below MAX bytes, NUL added. */
int	repo_text(struct repo *r, const git_oid *oid, char *buf, size_t max,
	    struct mr_err *e);
/* Writes a blob to standard output; a status. */
int	repo_print(struct repo *r, const struct entry *f);

/* config.c: settings; what they return the caller frees */
char	*config_text(git_repository *g, const char *name);
/* Did we make this repository? Only then may it be shallow and partial, and
 * only then is what an interrupted git left ours to remove. */
int	config_is_store(git_repository *g);
/* URL after url.BASE.insteadOf. */
char	*config_instead(git_repository *g, const char *url);
/* The URL of a remote's name, or NULL. */
char	*config_url(git_repository *g, const char *remote);
/* The remotes that promised what is missing: names, ended by NULL. */
char	**config_promisors(git_repository *g);

/* store.c: statuses, all said */
/* Waits for REPO.lock, a kernel lock; the descriptor, -1 if it cannot be had,
 * -2 if another has it. */
int	store_lock(struct repo *r);
/* Removes what a killed git left: its lock files and half a pack. Called
 * under the lock, which ends only after the git that it was taken for. */
void	store_sweep(struct repo *r);
/* Makes the bare store under a temporary name, gives it its own, opens it. */
int	store_make(struct repo *r);

/* fetch.c: git fetch; statuses, all said */
int	fetch_commit(struct repo *r);
/* Fetches what is in r->want and empties it. */
int	fetch_wanted(struct repo *r);

/* find.c: paths and components; E says what is BAD */
int	find_path(struct repo *r, const char *path, struct entry *f,
	    struct mr_err *e);
/* All sources of FORMAT, appended to L; ABSENT fills E as well. */
int	find_sources(struct repo *r, const char *format, int big,
	    struct list *l, struct mr_err *e);
void	list_clear(struct list *l);
/* Is S one word of printable ASCII, fit to stand in a line? */
int	is_word(const char *s);

/* endpoint.c */
int	print_endpoint(struct repo *r);

#endif
