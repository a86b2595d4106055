/* Which ONNX files belong to a model: by folder, or by name. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models.h"

/* longer ones first: "off_policy" ends with "policy" */
static const struct {
	const char	*name;
	enum component	 component;
} aliases[] = {
	{ "driving_supercombo", SUPERCOMBO },
	{ "driving_off_policy", OFF_POLICY },
	{ "driving_on_policy", ON_POLICY },
	{ "driving_policy", POLICY },
	{ "driving_vision", VISION },
	{ "supercombo", SUPERCOMBO },
	{ "off_policy", OFF_POLICY },
	{ "offpolicy", OFF_POLICY },
	{ "on_policy", ON_POLICY },
	{ "onpolicy", ON_POLICY },
	{ "policy", POLICY },
	{ "vision", VISION },
};
enum { ALIASES = sizeof(aliases) / sizeof(aliases[0]) };

const char *
component_name(enum component c)
{
	static const char *const names[] = {
		"driving_supercombo", "driving_off_policy",
		"driving_on_policy", "driving_policy", "driving_vision"
	};

	return names[c];
}

/* the component whose alias is the N bytes at S, or -1 */
static int
exactly(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < ALIASES; i++)
		if (strlen(aliases[i].name) == n &&
		    strncasecmp(s, aliases[i].name, n) == 0)
			return (int)aliases[i].component;
	return -1;
}

/* The component of a file's STEM of N bytes, or -1; *KEY: how many of them
 * are the id before it, 0 if none. OWNER's files are known by its name. */
static int
classify(const char *stem, size_t n, const char *owner, size_t *key)
{
	size_t i, len, own;
	int c;

	*key = 0;
	own = owner != NULL ? strlen(owner) : 0;
	if (own > 0 && n > own + 1 && strncmp(stem, owner, own) == 0 &&
	    stem[own] == '_' &&
	    (c = exactly(stem + own + 1, n - own - 1)) != -1) {
		*key = own;
		return c;
	}
	if ((c = exactly(stem, n)) != -1)
		return c;
	for (i = 0; i < ALIASES; i++) {
		len = strlen(aliases[i].name);
		if (n > len + 1 && stem[n - len - 1] == '_' &&
		    strncasecmp(stem + n - len, aliases[i].name, len) == 0) {
			*key = n - len - 1;
			return (int)aliases[i].component;
		}
	}
	return -1;
}

/* the entry of ID (NULL: of nobody), made where there is none */
static struct staged *
entry(struct staging *s, const char *id)
{
	struct staged *m;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (id == NULL ? s->model[i].id == NULL :
		    s->model[i].id != NULL && strcmp(s->model[i].id, id) == 0)
			return &s->model[i];
	s->model = mr_realloc(s->model, (s->n + 1) * sizeof(*s->model));
	m = &s->model[s->n++];
	memset(m, 0, sizeof(*m));
	m->id = id != NULL ? mr_strdup(id) : NULL;
	return m;
}

static void
add(struct staging *s, const char *id, int component, const char *path)
{
	struct staged *m;

	m = entry(s, id);
	if (m->file[component] == NULL)
		m->file[component] = mr_strdup(path);
	else if (m->twice == NULL)
		m->twice = mr_fmt("%s and %s are both %s",
		    m->file[component], path,
		    component_name((enum component)component));
}

static void
odd(struct staging *s, const char *path)
{
	if (s->nodd++ == 0)
		s->odd = mr_strdup(path);
}

/* length of NAME without ".onnx", 0 if it is no such name */
static size_t
stem(const char *name)
{
	size_t n;

	n = strlen(name);
	return n > 5 && strcmp(name + n - 5, ".onnx") == 0 && !mr_litter(name)
	    ? n - 5 : 0;
}

/* one file of the input folder itself, or, with FOLDER, of one below it */
static void
one_file(struct staging *s, const char *path, const char *name,
    const char *folder, const char *wanted)
{
	size_t n, key;
	char *id;
	int c;

	if ((n = stem(name)) == 0)
		return;
	c = classify(name, n, folder != NULL ? folder : wanted, &key);
	if (c == -1) {
		odd(s, path);
	} else if (folder != NULL) {
		add(s, folder, c, path);
	} else if (key == 0) {
		add(s, NULL, c, path);
	} else {
		id = mr_fmt("%.*s", (int)key, name);
		if (mr_id_ok(id))
			add(s, id, c, path);
		else
			odd(s, path);
		free(id);
	}
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* the names in DIR, sorted; NULL-terminated; NULL with errno */
static char **
names(const char *dir)
{
	struct dirent *d;
	char **v;
	size_t n = 0;
	DIR *dp;

	if ((dp = opendir(dir)) == NULL)
		return NULL;
	v = mr_malloc(sizeof(*v));
	while ((d = readdir(dp)) != NULL) {
		if (d->d_name[0] == '.')
			continue;
		v = mr_realloc(v, (n + 2) * sizeof(*v));
		v[n++] = mr_strdup(d->d_name);
	}
	closedir(dp);
	v[n] = NULL;
	qsort(v, n, sizeof(*v), by_name);
	return v;
}

/* reads DIR; FOLDER as in one_file */
static int
read_dir(struct staging *s, const char *dir, const char *folder,
    const char *wanted, struct mr_err *e)
{
	struct stat st;
	char **v, *path;
	size_t i;
	int rc = 0;

	if ((v = names(dir)) == NULL)
		return mr_fail(e, "%s: %s", dir, strerror(errno));
	for (i = 0; v[i] != NULL; i++) {
		path = mr_fmt("%s/%s", dir, v[i]);
		if (stat(path, &st) == -1 || S_ISREG(st.st_mode))
			one_file(s, path, v[i], folder, wanted);
		else if (S_ISDIR(st.st_mode) && folder == NULL &&
		    mr_id_ok(v[i]) && rc == 0)
			rc = read_dir(s, path, v[i], wanted, e);
		free(path);
		free(v[i]);
	}
	free(v);
	return rc;
}

static int
by_id(const void *a, const void *b)
{
	const struct staged *x = a, *y = b;

	if (x->id == NULL || y->id == NULL)
		return (x->id == NULL) - (y->id == NULL);
	return strcmp(x->id, y->id);
}

int
staging_read(struct staging *s, const char *dir, const char *wanted,
    struct mr_err *e)
{
	memset(s, 0, sizeof(*s));
	if (read_dir(s, dir, NULL, wanted, e) == -1) {
		staging_free(s);
		return -1;
	}
	if (s->n > 0)
		qsort(s->model, s->n, sizeof(*s->model), by_id);
	return 0;
}

void
staging_free(struct staging *s)
{
	size_t i, c;

	for (i = 0; i < s->n; i++) {
		free(s->model[i].id);
		free(s->model[i].twice);
		for (c = 0; c < COMPONENTS; c++)
			free(s->model[i].file[c]);
	}
	free(s->model);
	free(s->odd);
	memset(s, 0, sizeof(*s));
}

const struct staged *
staging_find(struct staging *s, const char *id, const char *dir,
    struct mr_err *e)
{
	const struct staged *m = NULL;
	size_t i;

	for (i = 0; i < s->n && m == NULL; i++)
		if (s->model[i].id != NULL && strcmp(s->model[i].id, id) == 0)
			m = &s->model[i];
	for (i = 0; i < s->n && m == NULL; i++)
		if (s->model[i].id == NULL)
			m = &s->model[i];
	if (m == NULL && s->n == 1) {
		m = &s->model[0];
		warnx("%s: nothing is staged under this name, taking the "
		    "only model there is, %s", id, m->id);
	} else if (m == NULL && s->n == 0 && s->nodd == 1) {
		warnx("%s: taking the only file there is, %s, for a "
		    "supercombo", id, s->odd);
		add(s, id, SUPERCOMBO, s->odd);
		m = &s->model[0];
	}
	if (m == NULL) {
		mr_fail(e, "%s: no staged ONNX files in %s", id, dir);
	} else if (m->twice != NULL) {
		mr_fail(e, "%s: %s, wanted one of them", id, m->twice);
		m = NULL;
	}
	return m;
}
