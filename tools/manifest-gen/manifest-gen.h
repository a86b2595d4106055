/* What the files of manifest-gen share: an artifact as its record has it. */
#ifndef MANIFEST_GEN_H
#define MANIFEST_GEN_H

#include "mr.h"

/* what the record of an artifact says */
struct artifact {
	const char	*id;
	int		 there;
	int64_t		 size;
	char		 sha256[MR_HEX];
	char		*name;		/* of the upload set */
	int		 multipart;	/* is it uploaded in parts? */
	size_t		 parts;		/* how many; 0: not cut yet */
};

/* Reads RESULTS/ID_artifact.json, if it is there; the caller frees A->name. */
int	read_artifact(struct artifact *a, const char *results, const char *id,
	    struct mr_err *e);
/* Two artifacts with one file name must be the same bytes. */
int	check_names(const struct artifact *v, size_t n, struct mr_err *e);
/* The text of multipart.json: the sets of parts in the order of ids, into
 * which V is sorted; NULL if one is not cut yet. The caller frees. */
char	*multipart(struct artifact *v, size_t n, size_t *len,
	    struct mr_err *e);

#endif
