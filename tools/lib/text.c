/* Text from foreign bytes: is it UTF-8, how to show it, how to quote it.
 * UTF-8 is what table 3-7 of the Unicode standard says. */
#include <string.h>

#include "mr.h"

size_t
mr_utf8(const char *s, size_t left)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n, i;

	if (p[0] < 0x80)
		return 1;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
		return 0;
	for (i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

char *
mr_utf8_put(char *s, uint32_t c)
{
	if (c < 0x80) {
		*s++ = (char)c;
		return s;
	}
	if (c < 0x800) {
		*s++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*s++ = (char)(0xe0 | c >> 12);
		} else {
			*s++ = (char)(0xf0 | c >> 18);
			*s++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*s++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*s++ = (char)(0x80 | (c & 0x3f));
	return s;
}

/* Is the sequence of N bytes at P a control character, C1 included? */
static int
control(const unsigned char *p, size_t n)
{
	if (n == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	return p[0] == 0xc2 && p[1] < 0xa0;
}

int
mr_text_ok(const char *s, size_t n, int controls)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i, k;

	for (i = 0; i < n; i += k) {
		k = mr_utf8(s + i, n - i);
		if (k == 0 || p[i] == '\0')
			return 0;
		if (!controls && control(p + i, k))
			return 0;
	}
	return 1;
}

int
mr_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

const char *
mr_show(char shown[MR_SHOWN], const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n && i < MR_SHOWN - 1; i++)
		shown[i] = s[i] >= 0x20 && s[i] < 0x7f ? s[i] : '?';
	shown[i] = '\0';
	return shown;
}

char *
mr_one_line(char *s)
{
	unsigned char *p;

	for (p = (unsigned char *)s; p != NULL && *p != '\0'; p++)
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
			p[0] = p[1] = '?';
	return s;
}

void
mr_json_quote(FILE *f, const char *s)
{
	const unsigned char *p;

	putc('"', f);
	for (p = (const unsigned char *)s; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(f, "\\u%04x", *p);
		else
			putc(*p, f);
	}
	putc('"', f);
}

void
mr_json_shapes(FILE *f, const struct mr_onnx_value *v, size_t n)
{
	size_t i, k;

	putc('{', f);
	for (i = 0; i < n; i++) {
		if (i > 0)
			fputs(", ", f);
		mr_json_quote(f, v[i].name);
		fputs(": [", f);
		for (k = 0; k < v[i].ndim; k++)
			fprintf(f, "%s%lld", k > 0 ? ", " : "",
			    (long long)v[i].dim[k]);
		putc(']', f);
	}
	putc('}', f);
}
