/* What artifacts may import: lists of exact pairs, one file for each release
 * of tinygrad, lines "module name"; man/catalog.5. */
#include <stdlib.h>
#include <string.h>

#include "mr.h"

enum { LIST_MAX = 1 << 20 };	/* bytes of a list */

struct mr_imports {
	char	**pair;		/* "module name", sorted */
	size_t	 n, room;
};

/* [A-Za-z_][A-Za-z0-9_]* of N bytes */
static int
identifier(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || s[i] == '_' ||
		    (s[i] >= 'A' && s[i] <= 'Z') ||
		    (i > 0 && s[i] >= '0' && s[i] <= '9')))
			return 0;
	return n > 0;
}

int
mr_imports_name(const char *name)
{
	return identifier(name, strlen(name));
}

int
mr_imports_module(const char *module)
{
	size_t n;

	for (;; module += n + 1) {
		n = strcspn(module, ".");
		if (!identifier(module, n))
			return 0;
		if (module[n] == '\0')
			return 1;
	}
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct mr_imports *
mr_imports_new(void)
{
	struct mr_imports *l;

	l = mr_malloc(sizeof(*l));
	memset(l, 0, sizeof(*l));
	return l;
}

void
mr_imports_free(struct mr_imports *l)
{
	size_t i;

	if (l == NULL)
		return;
	for (i = 0; i < l->n; i++)
		free(l->pair[i]);
	free(l->pair);
	free(l);
}

/* Takes a pair; -1 if it is not two names. */
static int
add(struct mr_imports *l, char *line)
{
	char *name;

	name = strchr(line, ' ');
	if (name == NULL)
		return -1;
	*name = '\0';
	if (!mr_imports_module(line) || !mr_imports_name(name + 1))
		return -1;
	*name = ' ';
	if (l->n == l->room) {
		l->room = l->room == 0 ? 64 : l->room * 2;
		l->pair = mr_realloc(l->pair, l->room * sizeof(*l->pair));
	}
	l->pair[l->n++] = mr_strdup(line);
	return 0;
}

int
mr_imports_load(struct mr_imports *l, const char *path, struct mr_err *e)
{
	char *text, *line, *end;
	size_t len, row;
	int status = 0;

	text = mr_slurp(path, LIST_MAX, &len, e);
	if (text == NULL)
		return -1;
	if (strlen(text) != len)
		status = mr_fail(e, "%s: holds a NUL byte", path);
	for (line = text, row = 1; status == 0 && *line != '\0';
	    line = end, row++) {
		end = line + strcspn(line, "\n");
		if (*end != '\0')
			*end++ = '\0';
		if (line[0] != '#' && line[0] != '\0' && add(l, line) == -1)
			status = mr_fail(e, "%s: line %zu: wanted a module, a "
			    "blank and a name", path, row);
	}
	free(text);
	if (l->n > 0)
		qsort(l->pair, l->n, sizeof(*l->pair), by_text);
	return status;
}

int
mr_imports_has(const struct mr_imports *l, const char *module,
    const char *name)
{
	char *pair;
	int found;

	pair = mr_fmt("%s %s", module, name);
	found = l->n > 0 && bsearch(&pair, l->pair, l->n, sizeof(*l->pair),
	    by_text) != NULL;
	free(pair);
	return found;
}
