/* The one header of libmr: what more than one tool needs, grouped by file. */
#ifndef MR_H
#define MR_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The exit statuses of every tool; man/model-rebuild.7 publishes them. */
enum {
	MR_OK = 0,	/* done */
	MR_NO = 1,	/* the answer is no: the input failed the check */
	MR_UNFIT = 2,	/* called wrongly, or a machine is not fit */
	MR_AGAIN = 111	/* a network or another machine failed for now */
};

enum {
	MR_BUF = 1 << 20,	/* bytes of every streaming buffer */
	MR_HEX = 65,		/* bytes of a sha256 in hex, NUL included */
	MR_ID_MAX = 64,		/* longest model id, NUL not included */
	MR_JSON_MAX = 64 << 20	/* longest JSON file that is read, bytes */
};

/* Why a library call returned -1: one line, lower case, no full stop. */
struct mr_err {
	char	text[1024];
};

/* ---- err.c: messages and statuses ---- */

/* Fills E (printf form); always returns -1, so `return mr_fail(...)`. */
int	mr_fail(struct mr_err *e, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));
/* The worse of two statuses: 2, then 111, then 1, then 0. */
int	mr_worse(int a, int b);
/* Closes stdout; returns STATUS, or MR_UNFIT (said) if output was lost. */
int	mr_finish(int status);
/* Prints "NAME VERSION" for -V; returns what main returns. */
int	mr_version(void);
/* malloc, realloc and strdup that exit with MR_UNFIT when memory is out. */
void	*mr_malloc(size_t n);
void	*mr_realloc(void *p, size_t n);
char	*mr_strdup(const char *s);
/* A formatted string; the caller frees. */
char	*mr_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Parses a decimal without sign or leading zeros, 0..MAX; -1 if it is not. */
int	mr_number(const char *s, uint64_t max, uint64_t *value);

/* ---- io.c: files that appear whole or not at all ---- */

/* A file being written beside its final name, as `.NAME.tmp`, locked. */
struct mr_out {
	int	fd;	/* write here; -1 when closed */
	char	*path;	/* the final name */
	char	*tmp;
};

/* Reads up to N bytes, fewer only at the end of file; -1 with errno. */
ssize_t	mr_read(int fd, void *buf, size_t n);
/* Writes all N bytes; -1 with errno. */
int	mr_write(int fd, const void *buf, size_t n);
/* The whole file, NUL added, *LEN its bytes; NULL if over MAX or unreadable.
 * The caller frees. */
char	*mr_slurp(const char *path, size_t max, size_t *len, struct mr_err *e);
/* Makes PATH and its parents, like mkdir -p. */
int	mr_mkdirs(const char *path, struct mr_err *e);
/* Opens a temporary file beside PATH, which is absent or a regular file; waits
 * for another writer of PATH. */
int	mr_out_open(struct mr_out *o, const char *path, struct mr_err *e);
/* fsync, rename, fsync of the directory; on failure aborts and returns -1. */
int	mr_out_commit(struct mr_out *o, struct mr_err *e);
/* Closes and removes the temporary file; safe after commit and twice. */
void	mr_out_abort(struct mr_out *o);
/* Flushes FD, or the directory that holds PATH, to the disk; nothing when
 * MR_SYNC=0 is in the environment (tests and benchmarks). */
int	mr_sync(int fd);
int	mr_sync_dir(const char *path);
/* Free bytes of the file system that holds PATH, for an ordinary user. */
int	mr_space(const char *path, uint64_t *bytes);
/* Is NAME litter of another system: begins with "._" or is .DS_Store? */
int	mr_litter(const char *name);

/* ---- name.c: the one check of everything that becomes a name ---- */

/* ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ */
int	mr_id_ok(const char *id);
/* ^v[0-9]{1,4}$ or empty */
int	mr_version_ok(const char *version);
/* 40 lower-case hex digits: a commit */
int	mr_ref_ok(const char *ref);
/* 64 lower-case hex digits: a sha256 */
int	mr_oid_ok(const char *oid);
/* driving_supercombo, driving_vision, driving_policy, driving_on_policy,
 * driving_off_policy, dmonitoring_model */
int	mr_component_ok(const char *component);
/* split or supercombo */
int	mr_format_ok(const char *format);

/* ---- sha256.c: digests, by OpenSSL ---- */

struct mr_sha256;

/* A running digest; exits when memory is out. Ends with mr_sha256_end. */
struct mr_sha256	*mr_sha256_new(void);
void	mr_sha256_add(struct mr_sha256 *h, const void *buf, size_t n);
/* Writes lower-case hex and frees H; HEX may be NULL. */
void	mr_sha256_end(struct mr_sha256 *h, char hex[MR_HEX]);
void	mr_sha256_buf(const void *buf, size_t n, char hex[MR_HEX]);
/* Digest and size of what is left to read in FD, or of PATH. */
int	mr_sha256_fd(int fd, char hex[MR_HEX], uint64_t *size);
int	mr_sha256_file(const char *path, char hex[MR_HEX], uint64_t *size,
	    struct mr_err *e);

/* Reads a .sha256 file, one line "DIGEST  NAME" as sha256sum writes it, which
 * must be of NAME; HEX is "" on failure. E does not name the file. */
int	mr_sha256_line(const char *buf, size_t n, const char *name,
	    char hex[MR_HEX], struct mr_err *e);

/* ---- json.c: JSON, by libjq; strict UTF-8, no duplicate keys ---- */

/* A value. A root (parse, load, new) is freed once with mr_json_free; what
 * get, at and val return is borrowed from its root and never freed. */
struct mr_json {
	uint64_t	w[2];
};
enum mr_json_type {
	MR_JSON_NONE, MR_JSON_NULL, MR_JSON_FALSE, MR_JSON_TRUE,
	MR_JSON_NUMBER, MR_JSON_STRING, MR_JSON_ARRAY, MR_JSON_OBJECT
};

/* Is it strict JSON (jsoncheck.c)? Errors name the line; a duplicate key
 * names both lines. */
int	mr_json_check(const char *buf, size_t n, struct mr_err *e);
int	mr_json_parse(struct mr_json *j, const char *buf, size_t n,
	    struct mr_err *e);
/* E begins with PATH. errno is ENOENT when there is no such file. */
int	mr_json_load(struct mr_json *j, const char *path, struct mr_err *e);
/* The same, but members whose names are not in ONLY, a list that NULL ends,
 * are left out wherever they are: checked, yet not built. */
int	mr_json_load_only(struct mr_json *j, const char *path,
	    const char *const only[], struct mr_err *e);
void	mr_json_free(struct mr_json j);
enum mr_json_type	mr_json_type(struct mr_json j);
/* Members and elements; type MR_JSON_NONE where there is none. */
struct mr_json	mr_json_get(struct mr_json object, const char *key);
struct mr_json	mr_json_at(struct mr_json array, size_t i);
size_t	mr_json_len(struct mr_json j);
/* Members in the order of the file: for (i = first; i >= 0; i = next). */
int	mr_json_first(struct mr_json object);
int	mr_json_next(struct mr_json object, int i);
const char	*mr_json_key(struct mr_json object, int i);
struct mr_json	mr_json_val(struct mr_json object, int i);
/* The text of a string, NULL for another type; borrowed. */
const char	*mr_json_text(struct mr_json j);
/* A member's text, or FALLBACK where it is missing or of another type. */
const char	*mr_json_str(struct mr_json object, const char *key,
	    const char *fallback);
/* A member's integer 0..2^53, or FALLBACK. */
int64_t	mr_json_int(struct mr_json object, const char *key, int64_t fallback);
/* A member's truth, or FALLBACK. */
int	mr_json_bool(struct mr_json object, const char *key, int fallback);
/* Same type and content? The order of members does not count. */
int	mr_json_equal(struct mr_json a, struct mr_json b);
/* Builders. set and push take V over (or copy it when borrowed, _copy). */
struct mr_json	mr_json_object(void);
struct mr_json	mr_json_array(void);
struct mr_json	mr_json_string(const char *s);
struct mr_json	mr_json_number(uint64_t n);
struct mr_json	mr_json_truth(int truth);
struct mr_json	mr_json_null(void);
struct mr_json	mr_json_copy(struct mr_json borrowed);
void	mr_json_set(struct mr_json *object, const char *key, struct mr_json v);
void	mr_json_set_str(struct mr_json *object, const char *key,
	    const char *s);
void	mr_json_set_int(struct mr_json *object, const char *key, uint64_t n);
void	mr_json_set_bool(struct mr_json *object, const char *key, int truth);
void	mr_json_del(struct mr_json *object, const char *key);
void	mr_json_push(struct mr_json *array, struct mr_json v);
/* Text on one line (INDENT 0) or indented; no final newline; caller frees. */
char	*mr_json_dump(struct mr_json j, int indent);
/* Writes J, 2-space indent and final newline, whole or not at all. */
int	mr_json_save(struct mr_json j, const char *path, struct mr_err *e);

/* ---- proc.c: children, and the time they take ---- */

/* Milliseconds of a clock that nobody sets. */
int64_t	mr_now_ms(void);

/* Starts ARGV with descriptors IN, OUT, ERR (-1: inherit; -2: /dev/null);
 * returns the pid, or -1 with errno. GROUP makes it lead its own group. */
pid_t	mr_spawn(const char *const argv[], int in, int out, int err, int group);
/* Waits up to SECONDS (0: for ever): the exit status, 128 + signal, or -1
 * with errno ETIMEDOUT, when the child (its group, if it leads one) has been
 * killed. */
int	mr_wait(pid_t pid, unsigned seconds);
/* mr_spawn and mr_wait in one. SIGINT, SIGTERM and SIGHUP end the child first,
 * then us; so it is with mr_capture. */
int	mr_run(const char *const argv[], int in, int out, int err,
	    unsigned seconds);
/* Runs ARGV and returns what it printed (at most MAX bytes, NUL added, the
 * caller frees); *STATUS as mr_wait. NULL only when it could not start. */
char	*mr_capture(const char *const argv[], size_t max, unsigned seconds,
	    int *status);

/* ---- home.c: where the program lies, and what belongs to it ---- */

/* The path of NAME, on PATH unless it has a slash; NULL if there is none. The
 * caller frees, as for both below. */
char	*mr_home_program(const char *name);
/* The folder of the running program, links resolved; NULL if not known. */
char	*mr_home_bin(const char *argv0);
/* The folder of what runs on a device: MR_DEVICE_DIR, that of the tree in
 * which BIN lies, or the installed one; NULL if there is none. */
char	*mr_home_device(const char *bin);

/* ---- git.c: git children that never prompt and can be stopped ---- */

struct mr_git {
	char	*out;		/* its stdout, NUL added; caller frees */
	size_t	 len;		/* bytes of it */
	char	 said[4096];	/* the end of its standard error */
	size_t	 nsaid;
	int	 exit;		/* its own status, 128 + signal */
	char	 why[256];	/* the line of that which says why it failed */
};

/* -1 if URL is no place to fetch from: an option, a remote helper (x::y),
 * http or git beyond this machine, a control character. */
int	mr_git_url(const char *url, struct mr_err *e);
/* URL without user and password, fit for a message; the caller frees. */
char	*mr_git_shown(const char *url);
/* Forgets what the environment says of another repository, forbids prompts,
 * opens closed standard descriptors (unwritable). Once, before any git. */
void	mr_git_env(void);
/* Runs ARGV, a git that asks URL (NULL: nobody), for at most SECONDS and as
 * long as it is not SILENT for so many (0: any). It dies with us; SIGINT,
 * SIGTERM, SIGHUP stop it, then us. Returns a status, and WHY if it is not 0;
 * a lock that is held stays held until git has ended. */
int	mr_git(struct mr_git *g, const char *url, const char *const argv[],
	    unsigned seconds, unsigned silent);

/* ---- key.c: what a product was made from; design of staleness ---- */

/* `name=value` lines in a fixed order; the digest decides, lines explain. */
struct mr_key {
	char	*text;	/* all lines, each ended by a newline */
	size_t	len;
};

void	mr_key_init(struct mr_key *k);
void	mr_key_free(struct mr_key *k);
void	mr_key_add(struct mr_key *k, const char *name, const char *value);
void	mr_key_digest(const struct mr_key *k, char hex[MR_HEX]);
/* Writes members PREFIXkey and PREFIXkey_lines into a record. */
void	mr_key_record(const struct mr_key *k, struct mr_json *record,
	    const char *prefix);
/* The first name whose value differs between K and the lines of a record,
 * as "name: was X, is Y"; NULL if all agree. The caller frees. */
char	*mr_key_diff(const struct mr_key *k, struct mr_json record,
	    const char *prefix);
/* The compiler's share of a key from IDENTITY, what `models --identity`
 * prints; -1 if that names no toolchain (K is then to be freed as well). */
int	mr_key_device(struct mr_key *k, struct mr_json identity);
/* The three keys. SOURCE is results/ID_source.json. */
void	mr_key_fetch(struct mr_key *k, const char *format, int gpu,
	    const char *ref);
void	mr_key_compile(struct mr_key *k, const char *format,
	    const char *version, int gpu, struct mr_json source,
	    const struct mr_key *device);
void	mr_key_ready(struct mr_key *k, const char *sha256, uint64_t limit,
	    uint64_t part);

/* ---- catalog.c: source maps and manifests; man/catalog.5 ---- */

struct mr_model {
	const char	*id;
	const char	*ref;		/* 40 hex; as written if LOOSE */
	const char	*format;	/* split or supercombo */
	const char	*version;	/* NULL: in no manifest */
	const char	*remote;	/* its own source remote, or NULL */
	int		 gpu;		/* uses_external_gpu */
	int		 gpu_said;	/* does the map say so, or no? */
	const char	*map;		/* the file that names it */
};
struct mr_catalog {
	struct mr_model	*models;	/* in the order of the maps */
	size_t		 n;
	struct mr_json	*roots;		/* what the texts are borrowed from */
	size_t		 nroots;
	struct mr_model	**sorted;	/* by id, for mr_catalog_find */
};

/* Reads maps and manifests, checks every name; ids must differ in more than
 * case. The first manifest that has an id gives its version. LOOSE lets a
 * ref be a branch name. */
int	mr_catalog_load(struct mr_catalog *c, char *const maps[],
	    char *const manifests[], int loose, struct mr_err *e);
const struct mr_model	*mr_catalog_find(const struct mr_catalog *c,
	    const char *id);
void	mr_catalog_free(struct mr_catalog *c);

/* ---- manifest.c: manifests, kept as they are written; man/catalog.5 ---- */

/* A member: where the texts of its key (a string) and its value begin. */
struct mr_member {
	const char	*key, *value;
};
struct mr_entry {
	char		 id[MR_ID_MAX + 1];	/* what is written as its id */
	size_t		 at;		/* its place in the file, from 1 */
	struct mr_member *member;
	size_t		 n;
};
struct mr_manifest {
	const char	*path;		/* for messages; borrowed */
	char		*text;
	struct mr_member *root;		/* none: the file was a bare list */
	size_t		 nroot, models;	/* models: which of them is the list */
	struct mr_entry	*entry;		/* each id once */
	size_t		 n;
	char		**own;		/* texts that were set */
	size_t		 nown;
};

/* Reads PATH, or standard input if it is NULL. Ids and versions are checked;
 * entries that are equal are folded, those of one id that differ refused. */
int	mr_manifest_load(struct mr_manifest *m, const char *path,
	    struct mr_err *e);
void	mr_manifest_free(struct mr_manifest *m);
/* The text as Python writes it, {"models": [...]}; the caller frees. */
char	*mr_manifest_text(const struct mr_manifest *m, size_t *len);
/* Puts a copy of V, whose texts must outlive M, in place AT (from 0). */
void	mr_manifest_add(struct mr_manifest *m, size_t at,
	    const struct mr_entry *v);
/* Sets a member, KEY free of escapes, to VALUE, which is JSON. */
void	mr_entry_set(struct mr_manifest *m, struct mr_entry *v,
	    const char *key, const char *value);
void	mr_entry_del(struct mr_entry *v, const char *key);
/* Are all members equal, whatever their order? */
int	mr_entry_same(const struct mr_entry *a, const struct mr_entry *b);

/* ---- pointer.c: Git LFS pointers; git-lfs docs/spec.md ---- */

enum { MR_POINTER_MAX = 1024 };	/* a blob this long or longer is none */
struct mr_pointer {
	char		 oid[MR_HEX];	/* sha256 of the object */
	uint64_t	 size;		/* bytes of the object */
	const char	*notice;	/* static, if not canonical; or NULL */
};

/* 1: a pointer; 0: plain content; -1: a pointer that must be refused. */
int	mr_pointer_parse(const char *buf, size_t n, struct mr_pointer *p,
	    struct mr_err *e);

/* ---- onnx.c: a strict walker of ONNX models, push style ---- */

struct mr_onnx;

enum { MR_ONNX_DIMS = 8 };
struct mr_onnx_value {		/* one graph input or output */
	char		*name;
	int		 elem_type;		/* TensorProto.DataType */
	int64_t		 dim[MR_ONNX_DIMS];	/* 0: symbolic or unset */
	size_t		 ndim;
};
struct mr_onnx_info {		/* borrowed from the walker */
	const struct mr_onnx_value	*inputs, *outputs;
	size_t		 ninputs, noutputs;
	const char	*checkpoint;	/* model_checkpoint, or NULL */
	const char	*slices;	/* base64 of output_slices, or NULL */
};

/* SIZE is the file's bytes, or UINT64_MAX when not known. Errors do not name
 * the file: "is an LFS pointer for ...", "graph needs N bytes, M are left". */
struct mr_onnx	*mr_onnx_new(uint64_t size);
void	mr_onnx_free(struct mr_onnx *w);
/* Feeds the next bytes; -1 as soon as the model is known to be bad. */
int	mr_onnx_feed(struct mr_onnx *w, const void *buf, size_t n,
	    struct mr_err *e);
/* Says that the input has ended. */
int	mr_onnx_end(struct mr_onnx *w, struct mr_err *e);
void	mr_onnx_info(const struct mr_onnx *w, struct mr_onnx_info *info);
/* Walks a whole file, seeking over weights. The caller frees *W. E begins with
 * PATH; errno is 0 if the model is bad, else PATH could not be read. */
int	mr_onnx_file(const char *path, struct mr_onnx **w, struct mr_err *e);

/* ---- slices.c: output_slices, read without unpickling ---- */

struct mr_slice {
	char	*name;
	int64_t	 start, stop, step;
	int	 has_start, has_stop, has_step;	/* 0: None */
};
struct mr_slices {
	struct mr_slice	*slice;
	size_t		 n;
};

/* Strict base64 of a pickled dict name -> slice. */
int	mr_slices_parse(struct mr_slices *s, const char *base64,
	    struct mr_err *e);
void	mr_slices_free(struct mr_slices *s);

/* ---- imports.c: what artifacts may import; man/catalog.5 ---- */

struct mr_imports;		/* a set of exact pairs */

struct mr_imports	*mr_imports_new(void);
void	mr_imports_free(struct mr_imports *l);
/* Adds the pairs of a list. E begins with PATH; errno is ENOENT when there is
 * no such file. */
int	mr_imports_load(struct mr_imports *l, const char *path,
	    struct mr_err *e);
int	mr_imports_has(const struct mr_imports *l, const char *module,
	    const char *name);
/* ASCII identifiers: one; one or more with dots between. */
int	mr_imports_name(const char *name);
int	mr_imports_module(const char *module);

/* ---- pickle.c: what a pickle imports; nothing is executed, push style ---- */

struct mr_pickle;
struct mr_import {
	char		*module, *name;
	uint64_t	 count;
	int		 listed;	/* 0 if there is no list */
};

/* A scan of an artifact, in band or out of band. SIZE is its bytes, or
 * UINT64_MAX when not known; LIST may be NULL and is borrowed. */
struct mr_pickle	*mr_pickle_new(uint64_t size,
	    const struct mr_imports *list);
void	mr_pickle_free(struct mr_pickle *p);
/* Feeds the next bytes. -1 as soon as the pickle is known to be malformed or
 * hostile, and from then on, so that mr_pickle_end alone may be looked at. An
 * import that is not on the list is no error. E does not name the file. */
int	mr_pickle_feed(struct mr_pickle *p, const void *buf, size_t n,
	    struct mr_err *e);
/* How many of the bytes to come nobody looks at; the caller may seek over some
 * or all of them and say so. */
uint64_t	mr_pickle_skip(const struct mr_pickle *p);
void	mr_pickle_skipped(struct mr_pickle *p, uint64_t n);
/* Says that the input has ended. */
int	mr_pickle_end(struct mr_pickle *p, struct mr_err *e);
/* What it imports, after mr_pickle_end sorted by module and name; borrowed. */
const struct mr_import	*mr_pickle_imports(const struct mr_pickle *p,
	    size_t *n);
/* The name of an opcode, as Python has it; NULL if there is none. */
const char	*mr_pickle_opcode(unsigned char op);

/* ---- text.c: text from foreign bytes; JSON output without libjq ---- */

enum { MR_SHOWN = 65 };
struct mr_onnx_value;

/* The length of the UTF-8 sequence at S, or 0: there is none in LEFT bytes. */
size_t	mr_utf8(const char *s, size_t left);
/* Writes C, at most 4 bytes; where it ends. A surrogate becomes what mr_utf8
 * refuses. */
char	*mr_utf8_put(char *s, uint32_t c);
/* Strict UTF-8 without NUL and, unless CONTROLS, without control characters? */
int	mr_text_ok(const char *s, size_t n, int controls);
/* 0..15, or -1. */
int	mr_hex_digit(char c);
/* S fit for a message: what is not printable ASCII is '?'; cut at 64. */
const char	*mr_show(char shown[MR_SHOWN], const char *s, size_t n);
/* Makes S fit for one line of a terminal, in place: controls become '?'.
 * Returns S, which may be NULL. */
char	*mr_one_line(char *s);
/* Prints UTF-8 text as a JSON string. */
void	mr_json_quote(FILE *f, const char *s);
/* Prints {"NAME": [DIM, ...], ...} on one line. */
void	mr_json_shapes(FILE *f, const struct mr_onnx_value *v, size_t n);

/* ---- progress.c: a bar on a terminal, plain lines elsewhere ---- */

struct mr_progress;

/* TOTAL in bytes, 0 when not known; draws on stderr only if QUIET is 0. */
struct mr_progress	*mr_progress_new(const char *what, uint64_t total,
	    int quiet);
void	mr_progress_add(struct mr_progress *p, uint64_t bytes);
/* Bytes that were there already, or (negative) are lost again: they count,
 * but not in the rate. */
void	mr_progress_have(struct mr_progress *p, int64_t bytes);
/* Takes the bar off the terminal, so that a message can be printed. */
void	mr_progress_clear(struct mr_progress *p);
void	mr_progress_end(struct mr_progress *p);

#endif
