/* The environment of a compile: nothing is inherited unless it is said. */
#include <sys/utsname.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"

/* sets NAME in V, replacing an earlier value; V ends with a NULL name */
static struct pair *
set(struct pair *v, const char *name, const char *value)
{
	size_t n;

	for (n = 0; v[n].name != NULL; n++)
		if (strcmp(v[n].name, name) == 0) {
			free(v[n].value);
			v[n].value = mr_strdup(value);
			return v;
		}
	v = mr_realloc(v, (n + 2) * sizeof(*v));
	v[n].name = mr_strdup(name);
	v[n].value = mr_strdup(value);
	v[n + 1].name = v[n + 1].value = NULL;
	return v;
}

static struct pair *
none(void)
{
	struct pair *v;

	v = mr_malloc(sizeof(*v));
	v->name = v->value = NULL;
	return v;
}

void
pairs_free(struct pair *v)
{
	size_t i;

	if (v == NULL)
		return;
	for (i = 0; v[i].name != NULL; i++) {
		free(v[i].name);
		free(v[i].value);
	}
	free(v);
}

/* an integer as Python's int(s, 0) takes it, more or less */
static int
is_number(const char *s)
{
	char *end;

	if (s == NULL || *s == '\0' || isspace((unsigned char)*s))
		return 0;
	strtol(s, &end, 0);
	return *end == '\0';
}

/* StarPilot's tuning for QCOM: defaults, unless a number is set already */
static struct pair *
starpilot_pinned(const struct place *p, int supercombo)
{
	static const struct {
		const char	*name, *split, *supercombo;
	} defaults[] = {
		{ "FLOAT16", "1", "1" }, { "IMAGE", "2", "1" },
		{ "JIT_BATCH_SIZE", "0", "0" }, { "NOLOCALS", "1", "1" },
		{ "OPENPILOT_HACKS", "1", "1" }, { "DEBUG", "0", NULL },
	};
	struct pair *v = none();
	const char *value;
	char *path;
	size_t i;

	for (i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		value = getenv(defaults[i].name);
		if (!is_number(value))
			value = supercombo ? defaults[i].supercombo :
			    defaults[i].split;
		if (value != NULL)
			v = set(v, defaults[i].name, value);
	}
	/* a known HCQ failure: never for a supercombo */
	if (!supercombo && is_number(getenv("QCOM_PRIORITY")))
		v = set(v, "QCOM_PRIORITY", getenv("QCOM_PRIORITY"));
	v = set(v, "PYTHONHASHSEED", "0");
	path = mr_fmt("%s:%s/tinygrad_repo", p->root, p->root);
	v = set(v, "PYTHONPATH", path);
	free(path);
	return v;
}

/* one line of tools/device/environment; its format is described there */
static struct pair *
one_line(struct pair *v, char *line, const char *arch, const char *version)
{
	char *word[4], *save = NULL;
	size_t n = 0;

	for (word[0] = strtok_r(line, " \t", &save); n < 4 && word[n] != NULL;
	    n++)
		if (n < 3)
			word[n + 1] = strtok_r(NULL, " \t", &save);
	if (n < 4 || word[0][0] == '#' || strcmp(word[0], "keep") == 0)
		return v;
	if (strcmp(word[0], "all") != 0 && strcmp(word[0], arch) != 0)
		return v;
	if (strcmp(word[1], "-") != 0 &&
	    strncmp(version, word[1], strlen(word[1])) != 0)
		return v;
	return set(v, word[2], word[3]);
}

static struct pair *
driver_pinned(const struct place *p, struct mr_err *e)
{
	struct utsname u;
	struct pair *v = none();
	char *path, *text, *line, *next;
	size_t n;

	path = mr_fmt("%s/environment", p->scripts);
	text = mr_slurp(path, MR_BUF, &n, e);
	free(path);
	if (text == NULL) {
		pairs_free(v);
		return NULL;
	}
	uname(&u);
	for (line = text; line != NULL; line = next) {
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		v = one_line(v, line, strcmp(u.machine, "aarch64") == 0 ?
		    "arm64" : u.machine, p->version);
	}
	free(text);
	return v;
}

struct pair *
env_pinned(const struct place *p, int supercombo, struct mr_err *e)
{
	return p->starpilot ? starpilot_pinned(p, supercombo) :
	    driver_pinned(p, e);
}

struct pair *
env_kept(const struct place *p)
{
	static const char *const kept[] = { "PATH", "HOME", "TMPDIR" };
	struct pair *v = none();
	char *meta;
	size_t i;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (getenv(kept[i]) != NULL)
			v = set(v, kept[i], getenv(kept[i]));
	if (!p->starpilot) {
		meta = mr_fmt("%s/onnx-meta", p->bin);
		v = set(v, "MR_ONNX_META", getenv("MR_ONNX_META") != NULL ?
		    getenv("MR_ONNX_META") : meta);
		free(meta);
	}
	return v;
}
