/* A file and the set it becomes, as the files of this tool share it. */
#ifndef SPLIT_H
#define SPLIT_H

#include "mr.h"

enum { PARTS_MAX = 100 };	/* .p00 to .p99 */

/* What DIR is to hold: NAME whole, or NAME.p00 .. and NAME.sha256. */
struct set {
	const char	*dir;
	const char	*name;
	uint64_t	 size;		/* bytes of the artifact */
	uint64_t	 part;		/* bytes of each part but the last */
	size_t		 n;		/* parts, 0: whole */
	uint64_t	 got;		/* bytes that were read */
	int		 keep;		/* DIR/NAME is the file itself */
	struct mr_out	 marker;	/* its lock is the set's lock */
	struct mr_out	 out[PARTS_MAX];
};

/* ---- copy.c: one pass of reading, hashing and writing ---- */

struct copy;

/* Starts the thread that hashes; exits when it cannot. */
struct copy	*copy_new(void);
/* Copies up to N bytes from IN to OUT (-1: only hashes them). Returns the
 * bytes, fewer at the end of IN; -1 with errno. */
int64_t	copy_some(struct copy *c, int in, int out, uint64_t n);
/* Ends the thread, writes the digest of all that was copied, frees C. */
void	copy_end(struct copy *c, char hex[MR_HEX]);

/* ---- set.c: a set is replaced as one unit ---- */

/* Bytes of part I; the name of part I, which the caller frees. */
uint64_t	set_size(const struct set *s, size_t i);
char	*set_part(const struct set *s, size_t i);
/* Locks the set, removes what a killed run left, asks for space. */
int	set_open(struct set *s, struct mr_err *e);
/* Writes all of IN, the file PATH, under temporary names. */
int	set_fill(struct set *s, int in, const char *path, char hex[MR_HEX],
	    struct mr_err *e);
/* Puts the set in its place: until its end there is no marker. */
int	set_publish(struct set *s, const char *hex, struct mr_err *e);
/* Removes what is temporary and the lock; safe at any time. */
void	set_close(struct set *s);

/* ---- record.c: what the pipeline wants written down ---- */

/* Reads results/ID_artifact.json: its sha256 and size, if it has one. */
int	record_load(struct mr_json *record, const char *path,
	    char hex[MR_HEX], int64_t *size, struct mr_err *e);
/* Saves the record without "ready". */
int	record_stale(struct mr_json *record, const char *path,
	    struct mr_err *e);
/* Replaces or removes the entry of ID in DIR/multipart.json. */
int	record_multipart(const struct set *s, const char *id,
	    const char *hex, struct mr_err *e);
/* Saves the record with "ready" and "multipart". */
int	record_ready(struct mr_json *record, const char *path,
	    const struct set *s, const char *hex, uint64_t limit,
	    struct mr_err *e);

#endif
