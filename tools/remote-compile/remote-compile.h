/* What the files of remote-compile share: the run, transport, sources, job. */
#ifndef REMOTE_COMPILE_H
#define REMOTE_COMPILE_H

#include "mr.h"

/* what the command line says */
struct opts {
	const char	*devices, *results, *format, *id;
	const char	*version;	/* "": the model has an empty one */
	int		 gpu, force, identity, noversion;
};
extern struct opts o;

/* ---- local.c: the transport to `models` on this machine ---- */

/* Asks the compiler who it is: a root and a key that the caller frees if the
 * status is 0. */
int	local_identity(struct mr_json *identity, struct mr_key *device);
/* Compiles what lies in the folder IN; its log is our standard error. */
int	local_compile(const char *in, const char *out);

/* ---- source.c: what is compiled is what was recorded ---- */

/* Loads the source record at PATH and hashes the staged bytes against it;
 * the caller frees if the status is 0. */
int	load_source(struct mr_json *source, const char *path);

/* ---- job.c: the compile and what becomes of its output ---- */

/* Compiles under KEY's own folder; K and DEVICE are what KEY is made of. */
int	job(const char *key, const struct mr_key *k,
	    const struct mr_key *device, struct mr_json identity,
	    const char *product, const char *record);

#endif
