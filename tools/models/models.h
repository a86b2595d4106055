/* The device compiler, as the files of this tool share it. */
#ifndef MODELS_H
#define MODELS_H

#include "mr.h"

/* ---- staged.c: which ONNX files belong to a model ---- */

enum component { SUPERCOMBO, OFF_POLICY, ON_POLICY, POLICY, VISION, COMPONENTS };

struct staged {
	char	*id;			/* NULL: files named for no model */
	char	*file[COMPONENTS];	/* paths, NULL where there is none */
	char	*twice;			/* a second file of one component */
};
struct staging {
	struct staged	*model;		/* in the order of their ids */
	size_t		 n;
	char		*odd;		/* a file whose name says nothing */
	size_t		 nodd;
};

/* driving_vision and so on */
const char	*component_name(enum component c);
/* Looks through DIR and the folders in it. A file that begins with "WANTED_"
 * is WANTED's, whatever else its name might mean; WANTED may be NULL. */
int	staging_read(struct staging *s, const char *dir, const char *wanted,
	    struct mr_err *e);
void	staging_free(struct staging *s);
/* The files of ID: its own, else those named for no model, else the only
 * ones there are (said on stderr). NULL with a message. Borrowed from S. */
const struct staged	*staging_find(struct staging *s, const char *id,
	    const char *dir, struct mr_err *e);

/* ---- place.c: where, and with what, this machine compiles ---- */

struct pair {
	char	*name, *value;
};
struct place {
	char	*bin;		/* the folder of this program */
	char	*root;		/* the device root, or NULL */
	char	*scripts;	/* the folder of compile_modeld.py */
	char	*python;
	char	*tinygrad;	/* the package's folder */
	char	*version;	/* of tinygrad */
	char	*pyversion;
	int	 starpilot;	/* the root's own compile script */
};

/* The folder of this program, or NULL; the caller frees. */
char	*place_bin(const char *argv0);
/* The device root, or NULL; the caller frees. */
char	*place_root(void);
int	place_find(struct place *p, const char *argv0, struct mr_err *e);
void	place_free(struct place *p);
/* What a compile's environment is pinned to, sorted as it is written; ends
 * with a NULL name; the caller frees with pairs_free. NULL with a message. */
struct pair	*place_pinned(const struct place *p, int supercombo,
	    struct mr_err *e);
/* What is passed on from our own environment. */
struct pair	*place_kept(const struct place *p);
void	pairs_free(struct pair *v);

/* ---- identity.c: a digest of everything that decides the bytes ---- */

/* Prints the identity as one line of JSON. */
int	identity(const struct place *p, const char *pipeline,
	    struct mr_err *e);

/* ---- build.c: one model, from its files to its artifact ---- */

struct job {
	const char	*id;
	const char	*version;	/* may be empty */
	const char	*pipeline;	/* policy or warp */
	const char	*in, *out;	/* folders */
	const char	*format;	/* auto, split or supercombo */
	uint64_t	 part;		/* bytes */
	int		 whole;		/* do not split */
};

/* Statuses as a tool's; it says what goes wrong. */
int	build(const struct job *j, const char *argv0);
/* Cuts PATH into parts below OUT, whatever its size. */
int	split(const char *bin, const char *path, const char *out,
	    uint64_t part, int force);

#endif
