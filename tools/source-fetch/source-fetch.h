/* What the files of source-fetch share: the run, and one source. */
#ifndef SOURCE_FETCH_H
#define SOURCE_FETCH_H

#include "mr.h"

enum { MAX_SOURCES = 256, MAX_WORDS = 200 };

/* what the command line says */
struct opts {
	char	*repo, *remote, *results, *format, *id, *ref;
	char	*hosts[32], *endpoints[32];
	size_t	 nhosts, nendpoints;
	int	 gpu;
	char	*tmp;			/* .state/fetch/ID */
};
extern struct opts o;

/* one blob of the commit; several of one component are its chunks */
struct source {
	char	*component, *path;
	char	*blob;			/* the git blob as it came out */
	char	*object;		/* the content: blob, or the object */
	char	 oid[MR_HEX];		/* sha256 from the pointer, or "" */
	char	 size[24];		/* bytes from the pointer */
};

/* a command line under way */
struct words {
	const char	*w[MAX_WORDS];
	size_t	 n;
};

/* ---- child.c: the tools that do the work ---- */

/* Adds a word, which is copied. */
void	word(struct words *v, const char *s);
/* Frees all words. */
void	forget(struct words *v);
/* git-blob's command line up to its operands; OPERAND may be NULL. */
void	git_blob(struct words *v, const char *form, const char *operand);
/* Opens FILE, or ends. */
int	must_open(const char *file, int flags);
/* Runs V, which is forgotten, with standard input and output from and to
 * files (NULL: none); its status as ours. */
int	run(struct words *v, const char *in, const char *out);
/* Runs V, which is forgotten; what it printed, which the caller frees. */
char	*ask(struct words *v, int *status);

/* ---- find.c: blobs out of the commit, objects of those that point ---- */

/* Each returns a status, and has said why it is not 0. */
int	find_sources(struct source *s, size_t *n);
int	take_blobs(struct source *s, size_t n);
int	fetch_objects(struct source *s, size_t n);

/* ---- stage.c: final names and the record ---- */

/* The staged name of a component; the caller frees. */
char	*staged(const char *component);
/* Stages all components, then writes the record. */
int	stage_all(struct source *s, size_t n);

#endif
