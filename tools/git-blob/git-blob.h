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
int64_t	now_ms(void);
/* Opens r->dir; OK with r->git NULL where nothing has that name. */
int	repo_open(struct repo *r);
void	repo_close(struct repo *r);
/* Says which pack is damaged, if one is: the reason why something is missing. */
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

/* fetch.c: the store, its lock, git fetch; statuses, all said */
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
