/* Settings of a repository, at every level. libgit2's own lookup of remotes
 * and its matching by pattern are not used: both leak in libgit2 1.5. */
#include <stdlib.h>
#include <string.h>

#include <git2.h>

#include "git-blob.h"

char *
config_text(git_repository *g, const char *name)
{
	git_config *c;
	const char *s;
	char *value = NULL;

	if (git_repository_config_snapshot(&c, g) < 0)
		return NULL;
	if (git_config_get_string(&s, c, name) == 0 && s != NULL && *s != '\0')
		value = mr_strdup(s);
	git_config_free(c);
	return value;
}

int
config_is_store(git_repository *g)
{
	git_config *c;
	int yes = 0;

	if (git_repository_config_snapshot(&c, g) < 0)
		return 0;
	if (git_config_get_bool(&yes, c, "model-rebuild.store") < 0)
		yes = 0;
	git_config_free(c);
	return yes;
}

/* Y if NAME is FIRST.Y.LAST, with its length in *N; else NULL */
static const char *
between(const char *name, const char *first, const char *last, size_t *n)
{
	size_t a, b, all;

	a = strlen(first);
	b = strlen(last);
	all = strlen(name);
	if (all <= a + b || strncmp(name, first, a) != 0 ||
	    strcmp(name + all - b, last) != 0)
		return NULL;
	*n = all - a - b;
	return name + a;
}

char *
config_instead(git_repository *g, const char *url)
{
	const char *base;
	git_config_iterator *it = NULL;
	git_config_entry *en;
	git_config *c;
	char *best = NULL;
	size_t n, len, longest = 0;

	if (git_repository_config_snapshot(&c, g) < 0)
		return mr_strdup(url);
	if (git_config_iterator_new(&it, c) == 0)
		while (git_config_next(&en, it) == 0) {
			base = between(en->name, "url.", ".insteadof", &n);
			if (base == NULL || en->value == NULL)
				continue;
			len = strlen(en->value);
			if (len < longest || len == 0 ||
			    strncmp(url, en->value, len) != 0)
				continue;
			longest = len;
			free(best);
			best = mr_fmt("%.*s%s", (int)n, base, url + len);
		}
	git_config_iterator_free(it);
	git_config_free(c);
	return best != NULL ? best : mr_strdup(url);
}

char *
config_url(git_repository *g, const char *remote)
{
	char *name, *url, *real;

	name = mr_fmt("remote.%s.url", remote);
	url = config_text(g, name);
	free(name);
	if (url == NULL)
		return NULL;
	real = config_instead(g, url);
	free(url);
	return real;
}

char **
config_promisors(git_repository *g)
{
	const char *name;
	git_config_iterator *it = NULL;
	git_config_entry *en;
	git_config *c;
	char **v;
	size_t n, k = 0;

	v = mr_malloc(sizeof(*v));
	if (git_repository_config_snapshot(&c, g) == 0) {
		if (git_config_iterator_new(&it, c) == 0)
			while (git_config_next(&en, it) == 0) {
				name = between(en->name, "remote.",
				    ".promisor", &n);
				if (name == NULL)
					continue;
				v = mr_realloc(v, (k + 2) * sizeof(*v));
				v[k++] = mr_fmt("%.*s", (int)n, name);
			}
		git_config_iterator_free(it);
		git_config_free(c);
	}
	v[k] = NULL;
	return v;
}
