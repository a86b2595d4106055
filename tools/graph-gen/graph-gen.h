/* What the files of graph-gen share: the state of one model. */
#ifndef GRAPH_GEN_H
#define GRAPH_GEN_H

#include "mr.h"

enum { FETCH, COMPILE, READY, STAGES };

/* one model: why each stage is stale, and what is wanted of this run */
struct state {
	const struct mr_model	*model;
	char	*stale[STAGES];		/* the reason, or NULL: current */
	int	 exists[STAGES];	/* is a product there, right or not? */
	int	 want[STAGES];		/* do the goals reach this stage? */
	int	 force;			/* compile even if current */
	int	 lost;			/* the source is gone upstream */
	char	*failed;		/* "stage: error" of a failure record */
	uint64_t size;			/* bytes of the artifact, 0: none */
	char	*verify;		/* "digest  path" lines */
};

/* one entry of multipart.json */
struct multi {
	const char	*id;		/* borrowed, as all texts here */
	const char	*sha256;
	int64_t		 size;
	size_t		 parts;
	int		 odd;		/* its names are not those of its id */
};

/* what lies in ready-for-resources; read once, then seen by many threads,
 * which touch the texts alone */
struct ready {
	struct mr_json	 root;		/* of multipart.json */
	int		 listed;	/* is there a multipart.json? */
	struct multi	*multi;		/* sorted by id */
	size_t		 nmulti;
	char		**name;		/* all names there, sorted */
	size_t		 nnames;
};

/* what staleness is measured against */
struct wanted {
	const char	*results;	/* the folder of records */
	const char	*identity;	/* path of the identity, or NULL */
	uint64_t	 limit, part;	/* of pkl-split, bytes */
	int		 detail;	/* reports want more than the reasons */
};

/* the words for a stage in lines for people */
extern const char *const stage_name[STAGES];

/* ---- state.c ---- */

/* Fills the states of N models, in several threads. */
void	evaluate(struct state *s, size_t n, const struct wanted *w);
/* Frees what evaluate found out. */
void	forget(struct state *s);
/* The file's bytes, or -1 if there is no such regular file. */
int64_t	size_of(const char *path);
/* Why PATH is not the product of SIZE bytes, or NULL; the caller frees. */
char	*check_file(const char *path, int64_t size);

/* ---- ready.c ---- */

void	ready_load(struct ready *r);
void	ready_free(struct ready *r);
/* Why the upload set of ID is not the one that its artifact's RECORD tells
 * of, or NULL; the caller frees. */
char	*ready_check(const struct ready *r, const char *id,
	    struct mr_json record);

/* ---- report.c ---- */

/* The reports: each returns a status. AGE: of the identity, seconds, -1:
 * none is known. */
int	report_status(const struct state *s, size_t n, long age);
int	report_plan(const struct state *s, size_t n, long age);
int	report_why(const struct state *s);
void	report_age(long age);

#endif
