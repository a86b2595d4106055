/* LFS pointers: any bytes; what is accepted reads the same when written. */
#include <stdlib.h>
#include <string.h>

#include "mr.h"

int	LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void
must(int truth)
{
	if (!truth)
		abort();
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct mr_pointer p, again;
	struct mr_err e;
	char *text;
	int rc;

	e.text[0] = '\0';
	rc = mr_pointer_parse((const char *)data, n, &p, &e);
	if (n == 0 || n >= MR_POINTER_MAX)
		must(rc == 0);
	if (rc == -1)
		must(e.text[0] != '\0' &&
		    mr_text_ok(e.text, strlen(e.text), 0));
	if (rc != 1)
		return 0;
	must(mr_oid_ok(p.oid) && p.size <= INT64_MAX);
	text = mr_fmt("version https://git-lfs.github.com/spec/v1\n"
	    "oid sha256:%s\nsize %llu\n", p.oid, (unsigned long long)p.size);
	must(mr_pointer_parse(text, strlen(text), &again, &e) == 1);
	must(again.notice == NULL && again.size == p.size &&
	    strcmp(again.oid, p.oid) == 0);
	/* no notice: it was that very text */
	if (p.notice == NULL)
		must(n == strlen(text) && memcmp(text, data, n) == 0);
	free(text);
	return 0;
}
