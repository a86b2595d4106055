/* Finds files in a commit's tree: paths, links, a model's components. */
#include <stdlib.h>
#include <string.h>

#include <git2.h>

#include "git-blob.h"

enum { CHUNKS_MAX = 999 };	/* of one file */

/* where openpilot, older openpilot and StarPilot keep their models */
static const char *const prefixes[] = { "openpilot/selfdrive/modeld/models",
    "selfdrive/modeld/models", "frogpilot/tinygrad_modeld/models" };
enum { NPREFIX = sizeof(prefixes) / sizeof(prefixes[0]) };

int
is_word(const char *s)
{
	if (*s == '\0')
		return 0;
	for (; *s != '\0'; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return 0;
	return 1;
}

void
list_clear(struct list *l)
{
	while (l->n > 0)
		free(l->v[--l->n].path);
	free(l->v);
	l->v = NULL;
}

static struct entry *
list_add(struct list *l, const struct entry *f)
{
	l->v = mr_realloc(l->v, (l->n + 1) * sizeof(*l->v));
	l->v[l->n] = *f;
	return &l->v[l->n++];
}

/* the tree OID; a missing one is wanted */
static int
get_tree(struct repo *r, const git_oid *oid, git_tree **t, struct mr_err *e)
{
	int rc;

	rc = git_tree_lookup(t, r->git, oid);
	if (rc == 0)
		return FOUND;
	if (rc == GIT_ENOTFOUND) {
		repo_want(r, oid);
		return WAIT;
	}
	mr_fail(e, "corrupt repository: %s", git_why());
	return BAD;
}

/* The folder that the first N bytes of PATH name. git_tree_entry_bypath is
 * not used: it cannot tell an absent path from a missing object. A link on
 * the way is absent: old openpilot has openpilot/selfdrive -> ../selfdrive. */
static int
find_dir(struct repo *r, const char *path, size_t n, git_tree **t,
    struct mr_err *e)
{
	const git_tree_entry *en;
	git_tree *up;
	char *name;
	size_t len;
	int rc;

	rc = get_tree(r, git_commit_tree_id(r->commit), t, e);
	while (rc == FOUND && n > 0) {
		for (len = 0; len < n && path[len] != '/'; len++)
			;
		up = *t;
		name = mr_fmt("%.*s", (int)len, path);
		en = git_tree_entry_byname(up, name);
		free(name);
		rc = ABSENT;
		if (en != NULL && git_tree_entry_type(en) == GIT_OBJECT_TREE)
			rc = get_tree(r, git_tree_entry_id(en), t, e);
		git_tree_free(up);
		len += len < n;
		path += len;
		n -= len;
	}
	return rc;
}

/* Fills F from an entry in the folder DIR ("" or ended by a slash). */
static int
fill(struct repo *r, const char *dir, const git_tree_entry *en,
    struct entry *f, struct mr_err *e)
{
	const char *what;

	f->mode = git_tree_entry_filemode(en);
	what = f->mode == GIT_FILEMODE_TREE ? "folder" :
	    f->mode == GIT_FILEMODE_LINK ? "symbolic link" :
	    f->mode == GIT_FILEMODE_COMMIT ? "submodule" : NULL;
	if (what != NULL) {
		mr_fail(e, "is a %s, wanted a file", what);
		return BAD;
	}
	f->oid = *git_tree_entry_id(en);
	f->path = mr_fmt("%s%s", dir, git_tree_entry_name(en));
	return repo_size(r, &f->oid, &f->size, e);
}

static int
is_link(const git_tree_entry *en)
{
	return git_tree_entry_filemode(en) == GIT_FILEMODE_LINK;
}

/* The file NAME of folder T. A symbolic link is followed once, and only to a
 * file beside it, whose path F then has. */
static int
find_name(struct repo *r, git_tree *t, const char *dir, const char *name,
    struct entry *f, struct mr_err *e)
{
	char to[256], shown[MR_SHOWN];
	const git_tree_entry *en;
	int rc;

	en = git_tree_entry_byname(t, name);
	if (en == NULL)
		return ABSENT;
	if (is_link(en)) {
		rc = repo_text(r, git_tree_entry_id(en), to, sizeof(to), e);
		if (rc != FOUND)
			return rc;
		mr_show(shown, to, strlen(to));
		if (!is_word(to) || strchr(to, '/') != NULL) {
			mr_fail(e, "is a symbolic link to \"%s\", wanted a "
			    "file or a link to one beside it", shown);
			return BAD;
		}
		en = git_tree_entry_byname(t, to);
		if (en == NULL || is_link(en)) {
			mr_fail(e, "is a symbolic link to \"%s\", which is %s",
			    shown, en == NULL ? "not there" :
			    "a symbolic link too");
			return BAD;
		}
	}
	return fill(r, dir, en, f, e);
}

int
find_path(struct repo *r, const char *path, struct entry *f, struct mr_err *e)
{
	const char *base;
	git_tree *t;
	char *dir;
	int rc;

	base = strrchr(path, '/');
	base = base == NULL ? path : base + 1;
	rc = find_dir(r, path, base > path ? (size_t)(base - path - 1) : 0, &t,
	    e);
	if (rc != FOUND)
		return rc;
	dir = mr_fmt("%.*s", (int)(base - path), path);
	rc = find_name(r, t, dir, base, f, e);
	free(dir);
	git_tree_free(t);
	return rc;
}

/* ---- files kept as chunks ---- */

/* Reads up to three digits at *S; at least two, else -1. */
static int
digits(const char **s, unsigned *value)
{
	size_t i;

	*value = 0;
	for (i = 0; i < 4 && (*s)[i] >= '0' && (*s)[i] <= '9'; i++)
		*value = *value * 10 + (unsigned)((*s)[i] - '0');
	*s += i;
	return i < 2 || i > 3 ? -1 : (int)i;
}

/* What stands behind "X.chunk": NN (TOTAL 0) or NNofMM. Joined by sorted
 * name, so an NN without a total has two digits. */
static int
chunk_name(const char *s, unsigned *chunk, unsigned *total)
{
	int n;

	*total = 0;
	n = digits(&s, chunk);
	if (n == 2 && *s == '\0')
		return 0;
	if (n == -1 || s[0] != 'o' || s[1] != 'f')
		return -1;
	s += 2;
	return digits(&s, total) == -1 || *s != '\0' || *total == 0 ? -1 : 0;
}

static int
by_chunk(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->chunk > y->chunk) - (x->chunk < y->chunk);
}

/* Are the N chunks of V complete? TOTAL is 0 for those that do not say. */
static int
complete(struct entry *v, size_t n, unsigned total, struct mr_err *e)
{
	unsigned first;
	size_t i;

	qsort(v, n, sizeof(*v), by_chunk);
	first = total > 0 ? 1 : v[0].chunk;
	for (i = 0; i < n && v[i].chunk == first + i; i++)
		;
	if (first <= 1 && i == n && (total == 0 || n == total))
		return FOUND;
	if (first > 1)
		mr_fail(e, "chunks begin with %02u, wanted 00 or 01", first);
	else if (total > 0)
		mr_fail(e, "has %zu chunks, wanted 1 to %u: %02zu is wrong", n,
		    total, i + 1);
	else
		mr_fail(e, "chunk %02zu is not there, but one behind it is",
		    first + i);
	return BAD;
}

/* X.chunkmanifest is the count as text; only X.chunkNNofMM have one. */
static int
check_manifest(struct repo *r, const git_tree_entry *en, unsigned total,
    struct mr_err *e)
{
	char text[32], shown[MR_SHOWN];
	uint64_t count;
	size_t n;
	int rc;

	if (en == NULL && total == 0)
		return FOUND;
	if (en == NULL || total == 0) {
		mr_fail(e, "has %s", total == 0 ? "a chunkmanifest, but no "
		    "chunks of a count" : "chunks, but no chunkmanifest");
		return BAD;
	}
	rc = repo_text(r, git_tree_entry_id(en), text, sizeof(text), e);
	if (rc != FOUND)
		return rc;
	for (n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]); n--)
		text[n - 1] = '\0';
	if (mr_number(text, CHUNKS_MAX, &count) == 0 && count == total)
		return FOUND;
	mr_fail(e, "chunkmanifest says \"%s\", wanted %u, which its chunks say",
	    mr_show(shown, text, n), total);
	return BAD;
}

/* Appends the chunks of NAME in folder T to L. */
static int
find_chunks(struct repo *r, git_tree *t, const char *dir, const char *name,
    struct list *l, struct mr_err *e)
{
	const git_tree_entry *en, *manifest = NULL;
	struct entry f = { .component = NULL };
	const char *s;
	size_t first, i, len;
	unsigned of, total = 0;
	int rc = FOUND, wait = 0;

	first = l->n;
	len = strlen(name);
	for (i = 0; i < git_tree_entrycount(t); i++) {
		en = git_tree_entry_byindex(t, i);
		s = git_tree_entry_name(en);
		if (strncmp(s, name, len) != 0 ||
		    strncmp(s + len, ".chunk", 6) != 0)
			continue;
		s += len + 6;
		if (strcmp(s, "manifest") == 0) {
			manifest = en;
			continue;
		}
		if (chunk_name(s, &f.chunk, &of) == -1) {
			mr_fail(e, "a chunk is named \"%.20s\", wanted NN or "
			    "NNofMM", is_word(s) ? s : "?");
			return BAD;
		}
		if (l->n > first && of != total) {
			mr_fail(e, "chunks of two counts, %u and %u", total,
			    of);
			return BAD;
		}
		total = of;
		f.path = NULL;
		rc = fill(r, dir, en, &f, e);
		if (rc == BAD) {
			free(f.path);
			return BAD;
		}
		wait |= rc == WAIT;
		list_add(l, &f);
	}
	if (l->n == first && manifest == NULL)
		return ABSENT;
	rc = check_manifest(r, manifest, total, e);
	if (rc == FOUND)
		rc = complete(l->v + first, l->n - first, total, e);
	return rc == FOUND && wait ? WAIT : rc;
}

/* ---- the sources of a driving model ---- */

/* Appends what folder T has of FILE: itself, or its chunks. */
static int
find_file(struct repo *r, git_tree *t, const char *dir, const char *file,
    struct list *l, struct mr_err *e)
{
	struct entry f = { .component = NULL };
	size_t first;
	int rc, chunks;

	first = l->n;
	chunks = find_chunks(r, t, dir, file, l, e);
	if (chunks == BAD)
		return BAD;
	rc = find_name(r, t, dir, file, &f, e);
	if (rc == ABSENT)
		return chunks;
	if (rc != BAD && l->n > first) {
		mr_fail(e, "is there whole and in chunks");
		free(f.path);
		return BAD;
	}
	if (f.path != NULL)
		list_add(l, &f);
	return rc;
}

/* Appends one component from the first folder that has it. */
static int
find_component(struct repo *r, const char *component, int big,
    struct list *l, struct mr_err *e)
{
	struct mr_err why;
	size_t i, first;
	git_tree *t;
	char *dir, *file;
	int rc = ABSENT;

	first = l->n;
	file = mr_fmt("%s%s.onnx", big ? "big_" : "", component);
	for (i = 0; rc == ABSENT && i < NPREFIX; i++) {
		dir = mr_fmt("%s/", prefixes[i]);
		rc = find_dir(r, dir, strlen(prefixes[i]), &t, &why);
		if (rc == FOUND) {
			rc = find_file(r, t, dir, file, l, &why);
			git_tree_free(t);
		}
		if (rc == BAD)
			mr_fail(e, "%s%s: %s", dir, file, why.text);
		free(dir);
	}
	free(file);
	for (; first < l->n; first++)
		l->v[first].component = component;
	return rc;
}

/* a part of a message: what the commit has instead, or "" */
static const char *
instead(struct repo *r, const char *format, int big)
{
	static const char *const names[] = { "driving_supercombo",
	    "driving_vision" };
	struct list l = { NULL, 0 };
	struct mr_err e;
	const char *text = "";
	int split, rc;

	split = strcmp(format, "split") == 0;
	rc = find_component(r, names[split], !big, &l, &e);
	if (rc == FOUND || rc == WAIT)
		text = big ? "; the small model is there" :
		    "; the big_ model is there: uses_external_gpu?";
	else {
		rc = find_component(r, names[!split], big, &l, &e);
		if (rc == FOUND || rc == WAIT)
			text = split ? "; a supercombo is there" :
			    "; a split model is there";
	}
	list_clear(&l);
	return text;
}

/* Says in E that a required file is in none of the folders. */
static int
lacks(struct repo *r, const char *format, int big, const char *what,
    struct mr_err *e)
{
	mr_fail(e, "no %s in %s, %s or %s%s", what, prefixes[0], prefixes[1],
	    prefixes[2], instead(r, format, big));
	return ABSENT;
}

int
find_sources(struct repo *r, const char *format, int big, struct list *l,
    struct mr_err *e)
{
	static const char *const split[] = { "driving_vision",
	    "driving_policy", "driving_on_policy", "driving_off_policy" };
	int rc[4], i;

	if (strcmp(format, "supercombo") == 0) {
		rc[0] = find_component(r, "driving_supercombo", big, l, e);
		return rc[0] != ABSENT ? rc[0] : lacks(r, format, big, big ?
		    "big_driving_supercombo.onnx" : "driving_supercombo.onnx",
		    e);
	}
	for (i = 0; i < 4; i++) {
		rc[i] = find_component(r, split[i], big, l, e);
		if (rc[i] == BAD)
			return BAD;
	}
	if (rc[0] == ABSENT)
		return lacks(r, format, big, big ? "big_driving_vision.onnx" :
		    "driving_vision.onnx", e);
	if (rc[1] == ABSENT && rc[2] == ABSENT)
		return lacks(r, format, big, big ? "big_driving_policy.onnx or "
		    "big_driving_on_policy.onnx" : "driving_policy.onnx or "
		    "driving_on_policy.onnx", e);
	return r->nwant > 0 ? WAIT : FOUND;
}
