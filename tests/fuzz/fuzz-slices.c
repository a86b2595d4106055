/* output_slices: any text as base64, and any bytes as a pickle. */
#include <stdlib.h>
#include <string.h>

#include "mr.h"

int	LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "abcdefghijklmnopqrstuvwxyz0123456789+/";

static char *
base64(const unsigned char *p, size_t n)
{
	char *text, *t;
	uint32_t v;
	size_t i, k;

	text = t = mr_malloc(n / 3 * 4 + 5);
	for (i = 0; i < n; i += 3) {
		k = n - i < 3 ? n - i : 3;
		v = (uint32_t)p[i] << 16;
		v |= k > 1 ? (uint32_t)p[i + 1] << 8 : 0;
		v |= k > 2 ? (uint32_t)p[i + 2] : 0;
		*t++ = set[v >> 18];
		*t++ = set[v >> 12 & 63];
		*t++ = k > 1 ? set[v >> 6 & 63] : '=';
		*t++ = k > 2 ? set[v & 63] : '=';
	}
	*t = '\0';
	return text;
}

static void
parse(const char *text)
{
	struct mr_slices s;
	struct mr_err e;
	size_t i, k;

	if (mr_slices_parse(&s, text, &e) == -1) {
		if (strncmp(e.text, "output_slices: ", 15) != 0)
			abort();
		return;
	}
	for (i = 0; i < s.n; i++) {
		if (!mr_text_ok(s.slice[i].name, strlen(s.slice[i].name), 0))
			abort();
		for (k = 0; k < i; k++)
			if (strcmp(s.slice[i].name, s.slice[k].name) == 0)
				abort();
	}
	mr_slices_free(&s);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	char *text;

	/* the first byte chooses: text, or a pickle that is encoded here */
	if (n == 0)
		return 0;
	if (data[0] == 't') {
		text = mr_malloc(n);
		memcpy(text, data + 1, n - 1);
		text[n - 1] = '\0';
	} else {
		text = base64(data + 1, n - 1);
	}
	parse(text);
	free(text);
	return 0;
}
