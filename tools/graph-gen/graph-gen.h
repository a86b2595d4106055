/* What the files of graph-gen share: the state of one model. */
#ifndef GRAPH_GEN_H
#define GRAPH_GEN_H

#include "mr.h"

enum { FETCH, COMPILE, READY, STAGES };

/* one model: why each stage is stale, and what is wanted of this run */
struct state {
	const struct mr_model	*model;
	char	*stale[STAGES];		/* the reason, or NULL: current */
	int	 exists[STAGES];	/* is some product there, right or not? */
	int	 want[STAGES];		/* do the goals reach this stage? */
	int	 force;			/* compile even if current */
	int	 lost;			/* the source is gone upstream */
	char	*failed;		/* "stage: error" of a failure record */
	uint64_t size;			/* bytes of the artifact, 0: none */
	char	*verify;		/* "digest  path" lines */
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

/* Fills the states of N models, in several threads. */
void	evaluate(struct state *s, size_t n, const struct wanted *w);

/* The reports: each returns a status. AGE: of the identity, seconds, -1:
 * none is known. */
int	report_status(const struct state *s, size_t n, long age);
int	report_plan(const struct state *s, size_t n, long age);
int	report_why(const struct state *s);
void	report_age(long age);

#endif
