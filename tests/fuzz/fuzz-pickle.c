/* Any bytes as an artifact: whole, in pieces, with skipped weights sought over
 * and with its size unknown the verdict is the same. */
#include <stdlib.h>
#include <string.h>

#include "mr.h"

int	LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

/* The imports, or what is wrong; the caller frees. */
static char *
scan(const unsigned char *data, size_t n, size_t step, int seek, uint64_t size)
{
	const struct mr_import *m;
	struct mr_pickle *p;
	struct mr_err e;
	char *text, *more;
	uint64_t skip;
	size_t i, k;

	p = mr_pickle_new(size, NULL);
	for (i = 0; i < n; i += k) {
		skip = seek ? mr_pickle_skip(p) : 0;
		k = skip < n - i ? (size_t)skip : n - i;
		if (k > 0) {
			mr_pickle_skipped(p, k);
			continue;
		}
		k = n - i < step ? n - i : step;
		mr_pickle_feed(p, data + i, k, &e);
	}
	if (mr_pickle_end(p, &e) == -1) {
		mr_pickle_free(p);
		return mr_strdup(e.text);
	}
	text = mr_strdup("");
	m = mr_pickle_imports(p, &k);
	for (i = 0; i < k; i++) {
		if (!mr_imports_module(m[i].module) ||
		    !mr_imports_name(m[i].name) || m[i].count == 0)
			abort();
		more = mr_fmt("%s%s %s\n", text, m[i].module, m[i].name);
		free(text);
		text = more;
	}
	mr_pickle_free(p);
	return text;
}

static void
same(char *a, char *b)
{
	if (strcmp(a, b) != 0)
		abort();
	free(b);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	char *whole, *unknown;

	whole = scan(data, n, n + 1, 0, n);
	same(whole, scan(data, n, 1, 0, n));
	same(whole, scan(data, n, 13, 0, n));
	same(whole, scan(data, n, 7, 1, n));
	/* not knowing, it may only refuse more */
	unknown = scan(data, n, 5, 0, UINT64_MAX);
	if (strstr(unknown, ", at byte") == NULL)
		same(whole, unknown);
	else
		free(unknown);
	free(whole);
	return 0;
}
