/* The models of a release, as the files of release-build share them. */
#ifndef RELEASE_BUILD_H
#define RELEASE_BUILD_H

#include "mr.h"

/* One file of an upload set. */
struct piece {
	char		*name;		/* in the release */
	uint64_t	 size;
	char		 sha256[MR_HEX];	/* of what lies there */
};

struct model {
	char		 id[MR_ID_MAX + 1], new[MR_ID_MAX + 1];
	struct mr_json	 record;	/* its artifact's */
	uint64_t	 size;
	char		 sha256[MR_HEX];
	int		 parts;		/* is it in parts? */
	struct piece	*piece;		/* in order; one if it is whole */
	size_t		 npieces;
	char		*fault;		/* why its files are refused, or NULL */
};

/* what the command line says, and what is found out */
struct release {
	const char	*manifest, *results, *ready, *suffix, *version;
	const char	*idmap, *table, *identity, *folder;
	uint64_t	 limit;		/* of the host, bytes of a file */
	struct model	*model;
	size_t		 n;
	char		*final, *tmp, *old, *map;	/* paths, see swap.c */
};

/* ---- check.c: what the records say ---- */

/* Loads the record of M and says (on stderr) whatever is against it; a
 * status. */
int	check_model(const struct release *r, struct model *m);
/* Says if not all are of one compiler, or not of the one in -i. */
int	check_toolchain(const struct release *r);

/* ---- hash.c ---- */

/* Hashes all files below r->tmp in several threads; says what does not hold,
 * and which files are of no model; a status. */
int	hash_all(struct release *r);

/* ---- sums.c: what lies in the release besides ---- */

/* Writes release.json and, last, SHA256SUMS. */
int	sums_write(const struct release *r, struct mr_err *e);

/* ---- swap.c: the release is replaced as one ---- */

/* Makes the folder, repairs what a killed run left; its lock is held. */
int	swap_begin(struct release *r, struct mr_err *e);
/* Puts r->tmp in the place of r->final. */
int	swap_end(const struct release *r, struct mr_err *e);
/* Removes a flat folder, its SHA256SUMS first. */
int	swap_remove(const char *dir, struct mr_err *e);

#endif
