/* .sha256 files: any bytes; what is accepted reads the same when written. */
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
	static const char name[] = "m1_driving_tinygrad.pkl";
	char hex[MR_HEX], again[MR_HEX], *text;
	struct mr_err e;

	e.text[0] = '\0';
	if (mr_sha256_line((const char *)data, n, name, hex, &e) == -1) {
		must(hex[0] == '\0' && e.text[0] != '\0');
		must(mr_text_ok(e.text, strlen(e.text), 0));
		return 0;
	}
	must(mr_oid_ok(hex));
	text = mr_fmt("%s  %s\n", hex, name);
	must(mr_sha256_line(text, strlen(text), name, again, &e) == 0);
	must(strcmp(hex, again) == 0);
	must(n + 1 == strlen(text) || n == strlen(text));
	free(text);
	return 0;
}
