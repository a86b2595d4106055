/* A digest of everything that decides an artifact's bytes, from files only. */
#include <sys/stat.h>
#include <sys/utsname.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

enum {
	THREADS = 2,
	CHUNK = 128 << 10,
	HEAD = 64 << 10		/* of a library: holds its build id */
};

/* ---- a tree of files as one digest ---- */

struct tree {
	char		**path;		/* relative to the root */
	char		(*hex)[MR_HEX];
	size_t		  n, room, next;
	const char	 *root;
	int		  scripts;	/* only what is_script says */
	pthread_mutex_t	  lock;		/* of next and e */
	struct mr_err	  e;		/* of a file that failed */
	int		  failed;
};

static void
add(struct tree *t, char *path)
{
	if (t->n == t->room) {
		t->room = t->room * 2 + 64;
		t->path = mr_realloc(t->path, t->room * sizeof(*t->path));
	}
	t->path[t->n++] = path;
}

/* what Python or a file manager leaves behind */
static int
skipped(const char *name)
{
	size_t n = strlen(name);

	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    mr_litter(name) || strcmp(name, "__pycache__") == 0 ||
	    strcmp(name, ".git") == 0 ||
	    (n > 4 && strcmp(name + n - 4, ".pyc") == 0);
}

/* a program of ours that has a say in an artifact's bytes: a better
 * validation makes no artifact stale */
static int
is_script(const char *name)
{
	size_t n = strlen(name);

	return strcmp(name, "environment") == 0 ||
	    (strncmp(name, "validat", 7) != 0 &&
	    n > 3 && strcmp(name + n - 3, ".py") == 0);
}

/* collects the files below root/DIR; DIR is "" or ends with a slash */
static int
walk(struct tree *t, const char *dir)
{
	struct stat st;
	struct dirent *d;
	char *path, *full, *sub;
	DIR *dp;
	int rc = 0;

	full = mr_fmt("%s/%s", t->root, dir);
	dp = opendir(full);
	if (dp == NULL)
		rc = mr_fail(&t->e, "%s: %s", full, strerror(errno));
	free(full);
	while (dp != NULL && rc == 0 && (d = readdir(dp)) != NULL) {
		if (skipped(d->d_name))
			continue;
		path = mr_fmt("%s%s", dir, d->d_name);
		full = mr_fmt("%s/%s", t->root, path);
		if (lstat(full, &st) == -1) {
			rc = mr_fail(&t->e, "%s: %s", full, strerror(errno));
		} else if (S_ISDIR(st.st_mode)) {
			sub = mr_fmt("%s/", path);
			rc = walk(t, sub);
			free(sub);
		} else if ((!t->scripts || is_script(d->d_name)) &&
		    (S_ISREG(st.st_mode) ||
		    (stat(full, &st) == 0 && S_ISREG(st.st_mode)))) {
			add(t, path);
			path = NULL;
		}
		free(full);
		free(path);
	}
	if (dp != NULL)
		closedir(dp);
	return rc;
}

/* the digest of a file, through BUF: one buffer serves hundreds of them */
static int
hash_file(const char *path, char *buf, char hex[MR_HEX], struct mr_err *e)
{
	struct mr_sha256 *h;
	ssize_t got;
	int fd, saved;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return mr_fail(e, "%s: %s", path, strerror(errno));
	h = mr_sha256_new();
	while ((got = mr_read(fd, buf, CHUNK)) > 0)
		mr_sha256_add(h, buf, (size_t)got);
	saved = errno;
	mr_sha256_end(h, hex);
	close(fd);
	return got == 0 ? 0 : mr_fail(e, "%s: read: %s", path,
	    strerror(saved));
}

/* hashes one file after the other until none is left */
static void *
hash_some(void *arg)
{
	struct tree *t = arg;
	struct mr_err e;
	char *full, *buf;
	size_t i;

	buf = mr_malloc(CHUNK);
	for (;;) {
		pthread_mutex_lock(&t->lock);
		i = t->failed ? t->n : t->next++;
		pthread_mutex_unlock(&t->lock);
		if (i >= t->n)
			break;
		full = mr_fmt("%s/%s", t->root, t->path[i]);
		if (hash_file(full, buf, t->hex[i], &e) == -1) {
			pthread_mutex_lock(&t->lock);
			t->failed = 1;
			t->e = e;
			pthread_mutex_unlock(&t->lock);
		}
		free(full);
	}
	free(buf);
	return NULL;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The digest of "sha256  path\n" of each file in T, in order of the paths;
 * frees T's paths. */
static int
hash_all(struct tree *t, char hex[MR_HEX], struct mr_err *e)
{
	struct mr_sha256 *h;
	pthread_t thread[THREADS - 1];
	size_t i, started = 0;

	if (t->n > 0)
		qsort(t->path, t->n, sizeof(*t->path), by_path);
	t->hex = mr_malloc((t->n + 1) * sizeof(*t->hex));
	pthread_mutex_init(&t->lock, NULL);
	while (started < THREADS - 1 &&
	    pthread_create(&thread[started], NULL, hash_some, t) == 0)
		started++;
	hash_some(t);
	for (i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&t->lock);
	h = mr_sha256_new();
	for (i = 0; i < t->n; i++) {
		mr_sha256_add(h, t->hex[i], MR_HEX - 1);
		mr_sha256_add(h, "  ", 2);
		mr_sha256_add(h, t->path[i], strlen(t->path[i]));
		mr_sha256_add(h, "\n", 1);
		free(t->path[i]);
	}
	mr_sha256_end(h, hex);
	free(t->path);
	free(t->hex);
	if (t->failed)
		*e = t->e;
	return t->failed ? -1 : 0;
}

static int
hash_tree(const char *root, int scripts, char hex[MR_HEX], struct mr_err *e)
{
	struct tree t;
	size_t i;

	memset(&t, 0, sizeof(t));
	t.root = root;
	t.scripts = scripts;
	if (walk(&t, "") == -1) {
		*e = t.e;
		for (i = 0; i < t.n; i++)
			free(t.path[i]);
		free(t.path);
		return -1;
	}
	return hash_all(&t, hex, e);
}

/* StarPilot's compiler is a handful of files, some of them optional */
static int
hash_starpilot(const char *root, char hex[MR_HEX], struct mr_err *e)
{
	static const char *const files[] = {
		"common/file_chunker.py", "models", "scripts/models.py",
		"selfdrive/modeld/compile_modeld.py",
		"selfdrive/modeld/get_model_metadata.py",
		"selfdrive/modeld/helpers.py",
		"selfdrive/modeld/usbgpu_link.py",
		"system/camerad/cameras/nv12_info.py"
	};
	struct stat st;
	struct tree t;
	char *full;
	size_t i;

	memset(&t, 0, sizeof(t));
	t.root = root;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		full = mr_fmt("%s/%s", root, files[i]);
		if (stat(full, &st) == 0 && S_ISREG(st.st_mode))
			add(&t, mr_strdup(files[i]));
		free(full);
	}
	return hash_all(&t, hex, e);
}

/* ---- the C compiler behind tinygrad's CPU backend ---- */

/* adds the size and the first HEAD bytes of PATH */
static void
hash_head(struct mr_sha256 *h, const char *path)
{
	struct stat st;
	ssize_t n;
	char *buf, *size;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return;
	buf = mr_malloc(HEAD);
	n = mr_read(fd, buf, HEAD);
	if (fstat(fd, &st) == 0 && n > 0) {
		size = mr_fmt("%lld\n", (long long)st.st_size);
		mr_sha256_add(h, size, strlen(size));
		mr_sha256_add(h, buf, (size_t)n);
		free(size);
	}
	free(buf);
	close(fd);
}

static void
hash_heads(struct mr_sha256 *h, const char *dir, const char *pattern)
{
	glob_t g;
	char *p;
	size_t i;

	p = mr_fmt("%s/../lib/%s", dir, pattern);
	if (glob(p, 0, NULL, &g) == 0) {
		for (i = 0; i < g.gl_pathc; i++)
			hash_head(h, g.gl_pathv[i]);
		globfree(&g);
	}
	free(p);
}

/* "PATH sha256:HEX" of clang, or NULL where there is none. A release of LLVM
 * is 170 MB; its build ids stand near the beginning of its files. */
static char *
compiler(void)
{
	struct mr_sha256 *h;
	char hex[MR_HEX], *path, *real = NULL, *slash, *said;
	const char *p, *end;

	for (p = getenv("PATH"); p != NULL && real == NULL;
	    p = *end == ':' ? end + 1 : NULL) {
		end = p + strcspn(p, ":");
		path = mr_fmt("%.*s/clang", (int)(end - p), p);
		if (access(path, X_OK) == 0)
			real = realpath(path, NULL);
		free(path);
	}
	if (real == NULL)
		return NULL;
	h = mr_sha256_new();
	hash_head(h, real);
	slash = strrchr(real, '/');
	path = mr_fmt("%.*s", (int)(slash - real), real);
	hash_heads(h, path, "libclang-cpp.so*");
	hash_heads(h, path, "libLLVM*.so*");
	mr_sha256_end(h, hex);
	said = mr_fmt("%s sha256:%s", real, hex);
	free(path);
	free(real);
	return said;
}

/* ---- the line of JSON ---- */

/* what "comma tizi" or so says, else local-ARCH; the caller frees */
static char *
device_type(int starpilot)
{
	struct utsname u;
	struct mr_err e;
	char *text, *type;
	size_t n;

	if (starpilot && (text = mr_slurp(
	    "/sys/firmware/devicetree/base/model", MR_BUF, &n, &e)) != NULL) {
		type = strncmp(text, "comma ", 6) == 0 ?
		    mr_strdup(text + 6) : NULL;
		free(text);
		if (type != NULL)
			return type;
	}
	uname(&u);
	return mr_fmt("local-%s", u.machine);
}

static int
environment(struct mr_json *j, const struct place *p, int supercombo,
    char **dev, struct mr_err *e)
{
	struct pair *v;
	size_t i;

	if ((v = env_pinned(p, supercombo, e)) == NULL)
		return -1;
	*j = mr_json_object();
	for (i = 0; v[i].name != NULL; i++) {
		mr_json_set_str(j, v[i].name, v[i].value);
		if (strcmp(v[i].name, "DEV") == 0 && *dev == NULL)
			*dev = mr_strdup(v[i].value);
	}
	pairs_free(v);
	return 0;
}

/* members environment and backend; StarPilot's differ by format */
static int
add_environment(struct mr_json *j, const struct place *p, const char *device,
    struct mr_err *e)
{
	struct mr_json all, one;
	char *dev = NULL;

	if (p->starpilot) {
		all = mr_json_object();
		if (environment(&one, p, 0, &dev, e) == -1)
			return -1;
		mr_json_set(&all, "split", one);
		if (environment(&one, p, 1, &dev, e) == -1)
			return -1;
		mr_json_set(&all, "supercombo", one);
		dev = mr_strdup(strncmp(device, "local-", 6) == 0 ?
		    "default" : "QCOM");
	} else if (environment(&all, p, 0, &dev, e) == -1)
		return -1;
	if (dev == NULL) {
		mr_json_free(all);
		return mr_fail(e, "%s: no compile target is pinned for this "
		    "machine", device);
	}
	mr_json_set_str(j, "backend", dev);
	mr_json_set(j, "environment", all);
	free(dev);
	return 0;
}

int
identity(const struct place *p, const char *pipeline, struct mr_err *e)
{
	char tree[MR_HEX], scripts[MR_HEX], both[MR_HEX], *s;
	struct mr_json j, cameras;
	int rc;

	if (hash_tree(p->tinygrad, 0, tree, e) == -1 || (p->starpilot ?
	    hash_starpilot(p->root, scripts, e) :
	    hash_tree(p->scripts, 1, scripts, e)) == -1)
		return -1;
	s = mr_fmt("tinygrad_tree=%s\nscripts=%s\n", tree, scripts);
	mr_sha256_buf(s, strlen(s), both);
	free(s);
	j = mr_json_object();
	mr_json_set_int(&j, "schema", 1);
	mr_json_set_str(&j, "driver", p->starpilot ? "starpilot" : "device");
	mr_json_set_str(&j, "tinygrad", p->version);
	mr_json_set_str(&j, "toolchain", both);
	mr_json_set_str(&j, "tinygrad_tree", tree);
	mr_json_set_str(&j, "scripts", scripts);
	mr_json_set_str(&j, "python", p->pyversion);
	if (!p->starpilot && (s = compiler()) != NULL) {
		mr_json_set_str(&j, "compiler", s);
		free(s);
	}
	cameras = mr_json_array();
	mr_json_push(&cameras, mr_json_string("1928x1208"));
	mr_json_push(&cameras, mr_json_string("1344x760"));
	mr_json_set(&j, "cameras", cameras);
	mr_json_set_str(&j, "image_history_pipeline", pipeline);
	s = device_type(p->starpilot);
	mr_json_set_str(&j, "device", s);
	rc = add_environment(&j, p, s, e);
	free(s);
	if (rc == 0) {
		s = mr_json_dump(j, 0);
		puts(s);
		free(s);
	}
	mr_json_free(j);
	return rc;
}
