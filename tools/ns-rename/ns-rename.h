/* The plan of a renaming, as the files of ns-rename share it. */
#ifndef NS_RENAME_H
#define NS_RENAME_H

#include "mr.h"

/* One id of the manifest. */
struct pair {
	char	 old[MR_ID_MAX + 1], new[MR_ID_MAX + 1];	/* same: kept */
	int	 done;		/* its files were renamed by an earlier run */
	size_t	 nfiles;	/* of its upload set, in the folder */
};

enum act { MOVE, DROP, LITTER };
struct file {
	enum act	 act;
	char		*from, *to;	/* names in a folder; LITTER: to NULL */
};

struct plan {
	char		 version[8];	/* of the release, or empty */
	struct pair	*pair;		/* in the order of the manifest */
	size_t		 npairs;
	struct pair	**by_old;	/* sorted, for plan_find */
	struct file	*file;
	size_t		 nfiles;
};

/* What reconciles a catalog with its release: ids that a table names, and
 * entries that it adds after one; man/catalog.5. */
struct table {
	struct mr_json	 root, rename;	/* root null: there is no table */
	struct mr_manifest add;
	const char	*after;
};

/* ---- plan.c ---- */

/* Adds a pair; -1 if a name is none. plan_prove when all are there. */
int	plan_add(struct plan *p, const char *old, const char *new,
	    struct mr_err *e);
/* Sorts; refuses new ids that are equal, also but for case. */
int	plan_prove(struct plan *p, struct mr_err *e);
struct pair	*plan_find(const struct plan *p, const char *old);
/* The plan as text; the caller frees. Reading it proves it again. */
char	*plan_text(const struct plan *p);
int	plan_load(struct plan *p, const char *path, struct mr_err *e);
/* {"old": "new", ...} of the ids that change; the caller frees. */
char	*plan_idmap(const struct plan *p);
void	plan_free(struct plan *p);

/* ---- scan.c: which files of a folder the plan concerns ---- */

/* Fills the plan's files from DIR. INTO: for another folder, so that nothing
 * is in the way there, and what keeps its id comes along. */
int	scan(struct plan *p, const char *dir, int into, struct mr_err *e);
/* The id in ID_driving_tinygrad.pkl, .pNN or .sha256, and what follows the
 * id, or NULL if NAME is of another kind. */
const char	*scan_id(const char *name, char id[MR_ID_MAX + 1]);
/* Does NAME end in .sha256? */
int	scan_marker(const char *name);

/* ---- text.c: the files that hold names ---- */

/* What DIR/FROM, a .sha256 file, is under its new name; the caller frees. */
char	*text_marker(const char *dir, const char *from, const char *to,
	    struct mr_err *e);
/* DIR/multipart.json with new names; those of no pair are left out if ONLY;
 * NULL and no text in E if there is no such file. The caller frees. */
char	*text_multipart(const char *dir, const struct plan *p, int only,
	    struct mr_err *e);
/* Writes TEXT to DIR/NAME, whole or not at all. */
int	text_put(const char *dir, const char *name, const char *text,
	    struct mr_err *e);

/* ---- table.c ---- */

/* PATH may be NULL. */
int	table_load(struct table *t, const char *path, struct mr_err *e);
void	table_free(struct table *t);
/* The plan of a table alone: its ids, those of ONLY if that names any; what
 * else the manifest has is kept. Entries that are there under both names and
 * equal are left once. DIR may be NULL. */
int	table_plan(const struct table *t, struct plan *p,
	    struct mr_manifest *m, char *const only[], const char *dir,
	    struct mr_err *e);
/* Adds the table's entries to M, whose ids are new already, or moves them to
 * their place. With DIR only those whose artifact P has, or DIR. */
void	table_add(const struct table *t, const struct plan *p,
	    struct mr_manifest *m, const char *dir);

/* ---- into.c and inplace.c: the two ways; MANIFEST is a text ---- */

int	into(const struct plan *p, const char *dir, const char *out,
	    const char *manifest, struct mr_err *e);
/* Goes on where a killed run of the same plan ended. */
int	inplace(struct plan *p, const char *dir, const char *manifest,
	    struct mr_err *e);
/* Marks the pairs whose files DIR had renamed before. */
int	inplace_done(struct plan *p, const char *dir, struct mr_err *e);
/* The plan that was begun in DIR and not ended, or NULL; the caller frees. */
char	*inplace_begun(const char *dir);

#endif
