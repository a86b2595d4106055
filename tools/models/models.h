/* The device compiler, as the files of this tool share it. */
#ifndef MODELS_H
#define MODELS_H

#include "mr.h"

/* ---- staged.c: which ONNX files belong to a model ---- */

enum component {
	SUPERCOMBO, OFF_POLICY, ON_POLICY, POLICY, VISION, COMPONENTS
};

struct staged {
	char	*id;		/* NULL: files named for no model */
	char	*file[COMPONENTS];	/* NULL where there is none */
	char	*twice;		/* says which are one component */
};
struct staging {
	struct staged	*model;	/* in the order of their ids */
	size_t		 n;
	char		*odd;	/* the first file whose name says nothing */
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

struct place {
	char	*bin;		/* the folder of this program */
	char	*root;		/* the device root, or NULL */
	char	*scripts;	/* the folder of compile_modeld.py */
	char	*drivers;	/* that of our own, or NULL */
	char	*python;
	char	*tinygrad;	/* the package's folder */
	char	*version;	/* of tinygrad */
	char	*pyversion;
	int	 starpilot;	/* the root's own compile script */
};

/* The device root, or NULL; the caller frees. */
char	*place_root(void);
int	place_find(struct place *p, const char *argv0, struct mr_err *e);
void	place_free(struct place *p);

/* ---- env.c: the environment of a compile ---- */

struct pair {
	char	*name, *value;
};

/* What it is pinned to; the last name is NULL; free with pairs_free. NULL
 * with a message. */
struct pair	*env_pinned(const struct place *p, int supercombo,
	    struct mr_err *e);
/* What is passed on from our own environment. */
struct pair	*env_kept(const struct place *p);
void	pairs_free(struct pair *v);

/* ---- backend.c: the Python program that does the work ---- */

/* Runs ARGV, a program of PLACE, with the environment of a compile; WHAT it is
 * called. A signal that ends us ends it first. Statuses as a tool's. */
int	backend_run(const char *const *argv, const struct place *place,
	    int supercombo, const char *what);
/* From now on a signal is kept for backend_end. */
void	backend_catch(void);
/* If a signal came meanwhile, dies of it; what is to be undone is, by then. */
void	backend_end(void);

/* ---- identity.c: a digest of everything that decides the bytes ---- */

/* Prints the identity as one line of JSON. */
int	identity(const struct place *p, const char *pipeline,
	    struct mr_err *e);

/* ---- plan.c: what is to be built ---- */

struct job {
	const char	*id;
	const char	*version;	/* may be empty */
	const char	*pipeline;	/* policy or warp */
	const char	*in, *out;	/* folders */
	const char	*format;	/* auto, split or supercombo */
	uint64_t	 part;		/* bytes */
	int		 whole;		/* do not split */
};
struct plan {
	const struct staged	*files;
	enum component		 use[3];	/* in the order of options */
	size_t			 n;
	const char		*type;		/* --model-type */
	int			 supercombo;
	uint64_t		 bytes;		/* of all sources */
	int			 skip;		/* --frame-skip */
	char			*version;	/* free it, also after -1 */
};

/* Chooses and walks the sources, says which; finds the version. */
int	plan_make(struct plan *p, const struct job *j,
	    const struct staged *files, struct mr_err *e);

/* ---- output.c: what a compile leaves behind ---- */

enum { SPLIT_LIMIT = 100000000 };	/* bytes of a file that is hosted */

/* Removes what DIR holds of ID's artifacts, markers first. */
int	outputs_clear(const char *dir, const char *id, struct mr_err *e);
/* Is PATH framed as an artifact is? *SIZE: its bytes. */
int	output_check(const char *path, uint64_t *size, struct mr_err *e);
/* Cuts PATH into parts below OUT, with FORCE whatever its size. */
int	split(const char *bin, const char *path, const char *out,
	    uint64_t part, int force);

/* ---- build.c: one model, from its files to its artifact ---- */

/* Statuses as a tool's; it says what goes wrong. */
int	build(const struct job *j, const char *argv0);

/* ---- switch.c: the car's choice of model, for a while ---- */

struct switched {
	int	 on;		/* there is a car whose choice is switched */
	int	 lock;
	char	*dir;		/* of the journal */
	char	*params, *models;	/* the car's folders */
	char	*installed;	/* where the car looks for the artifact */
};

/* Where ROOT is a car's: first puts back what an earlier run could not, then
 * makes it choose the model of J, at ARTIFACT. A status, said in E; switch_back
 * follows whatever it is. */
int	switch_to(struct switched *s, const char *root, const char *artifact,
	    const struct job *j, struct mr_err *e);
int	switch_back(struct switched *s, struct mr_err *e);

/* ---- validate.c ---- */

/* Runs FILE, an artifact of J's model, as a car would; writes
 * ID_validation.json. MR_NO if it failed. */
int	validate(const struct job *j, const char *file, const char *argv0);

#endif
