/* Where, and with what, this machine compiles. */
#include <sys/stat.h>

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

static int
exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* A formatted path if something has it, else NULL; FMT is freed. */
static char *
if_exists(char *path)
{
	if (exists(path))
		return path;
	free(path);
	return NULL;
}

/* the part of PATH before its last slash; the caller frees */
static char *
parent(const char *path)
{
	const char *slash;

	slash = strrchr(path, '/');
	if (slash == NULL)
		return mr_strdup(".");
	return mr_fmt("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

char *
place_root(void)
{
	const char *root;

	root = getenv("MR_DEVICE_ROOT");
	if (root != NULL && root[0] != '\0')
		return realpath(root, NULL);
	return exists("selfdrive") ? realpath(".", NULL) : NULL;
}

/* ---- Python and tinygrad ---- */

/* the last match of PATTERN, or NULL; PATTERN is freed */
static char *
match(char *pattern)
{
	glob_t g;
	char *found = NULL;

	if (glob(pattern, 0, NULL, &g) == 0) {
		found = mr_strdup(g.gl_pathv[g.gl_pathc - 1]);
		globfree(&g);
	}
	free(pattern);
	return found;
}

/* MR_PYTHON, the root's, that of the build tree, the system's */
static char *
find_python(const struct place *p)
{
	const char *set;
	char *path = NULL;

	set = getenv("MR_PYTHON");
	if (set != NULL && set[0] != '\0')
		return mr_home_program(set);
	if (p->starpilot)
		path = if_exists(mr_fmt("%s/.venv/bin/python3", p->root));
	else
		path = if_exists(mr_fmt("%s/../venv/bin/python3", p->bin));
	return path != NULL ? path : mr_home_program("python3");
}

/* the value of `NAME = "VALUE"` in a small text file, or NULL */
static char *
setting(const char *path, const char *name)
{
	struct mr_err e;
	char *text, *line, *next, *v, *found = NULL;
	size_t n;

	if ((text = mr_slurp(path, MR_BUF, &n, &e)) == NULL)
		return NULL;
	for (line = text; line != NULL && found == NULL; line = next) {
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		line += strspn(line, " \t");
		n = strlen(name);
		if (strncmp(line, name, n) != 0)
			continue;
		v = line + n + strspn(line + n, " \t");
		if (*v++ != '=')
			continue;
		v += strspn(v, " \t\"'");
		n = strspn(v, "0123456789abcdefghijklmnopqrstuvwxyz.+-");
		if (n > 0)
			found = mr_fmt("%.*s", (int)n, v);
	}
	free(text);
	return found;
}

/* 3.11 of ".../python3.11/site-packages/tinygrad", or unknown */
static char *
version_in(const char *path)
{
	const char *s;

	s = strstr(path, "/python3.");
	return s == NULL ? mr_strdup("unknown") :
	    mr_fmt("%.*s", (int)strcspn(s + 7, "/"), s + 7);
}

/* tinygrad as the root carries it */
static void
root_tinygrad(struct place *p)
{
	char *toml, *setup;

	p->tinygrad = if_exists(mr_fmt("%s/tinygrad_repo/tinygrad", p->root));
	if (p->tinygrad == NULL)
		p->tinygrad = if_exists(mr_fmt("%s/tinygrad", p->root));
	if (p->tinygrad == NULL)
		return;
	toml = mr_fmt("%s/../pyproject.toml", p->tinygrad);
	setup = mr_fmt("%s/../setup.py", p->tinygrad);
	p->version = setting(toml, "version");
	if (p->version == NULL)
		p->version = setting(setup, "version");
	if (p->version == NULL)
		p->version = mr_strdup("unknown");
	free(toml);
	free(setup);
}

/* tinygrad as pip installed it for p->python */
static void
pip_tinygrad(struct place *p)
{
	char *bin, *info, *s;

	bin = parent(p->python);
	p->tinygrad = match(mr_fmt(
	    "%s/../lib/python3.*/site-packages/tinygrad", bin));
	if (p->tinygrad == NULL)
		p->tinygrad = match(mr_fmt(
		    "%s/../local/lib/python3.*/dist-packages/tinygrad", bin));
	free(bin);
	if (p->tinygrad == NULL)
		return;
	info = match(mr_fmt("%s-*.dist-info", p->tinygrad));
	if (info != NULL) {
		s = strrchr(info, '/') + sizeof("/tinygrad-") - 1;
		p->version = mr_fmt("%.*s",
		    (int)(strlen(s) - strlen(".dist-info")), s);
	} else
		p->version = mr_strdup("unknown");
	free(info);
}

static int
find_tools(struct place *p, struct mr_err *e)
{
	char *bin, *cfg;

	if ((p->python = find_python(p)) == NULL)
		return mr_fail(e, "python3: not found, set MR_PYTHON or run "
		    "make deps");
	if (p->starpilot)
		root_tinygrad(p);
	if (p->tinygrad == NULL)
		pip_tinygrad(p);
	if (p->tinygrad == NULL)
		return mr_fail(e, "%s: has no tinygrad, make deps installs "
		    "it", p->python);
	bin = parent(p->python);
	cfg = mr_fmt("%s/../pyvenv.cfg", bin);
	p->pyversion = setting(cfg, "version");
	if (p->pyversion == NULL)
		p->pyversion = setting(cfg, "version_info");
	if (p->pyversion == NULL)
		p->pyversion = version_in(p->tinygrad);
	free(bin);
	free(cfg);
	return 0;
}

int
place_find(struct place *p, const char *argv0, struct mr_err *e)
{
	char *script;

	memset(p, 0, sizeof(*p));
	if ((p->bin = mr_home_bin(argv0)) == NULL)
		return mr_fail(e, "%s: its own folder is not known", argv0);
	p->root = place_root();
	if (p->root != NULL) {
		script = mr_fmt("%s/selfdrive/modeld/compile_modeld.py",
		    p->root);
		p->starpilot = exists(script);
		free(script);
	}
	p->drivers = mr_home_device(p->bin);
	if (p->starpilot)
		p->scripts = mr_fmt("%s/selfdrive/modeld", p->root);
	else if (p->drivers != NULL)
		p->scripts = mr_strdup(p->drivers);
	if (p->scripts == NULL)
		return mr_fail(e, "compile_modeld.py: neither a device root "
		    "nor %s/device has it", MR_LIBEXEC);
	return find_tools(p, e);
}

void
place_free(struct place *p)
{
	free(p->bin);
	free(p->root);
	free(p->scripts);
	free(p->drivers);
	free(p->python);
	free(p->tinygrad);
	free(p->version);
	free(p->pyversion);
	memset(p, 0, sizeof(*p));
}
