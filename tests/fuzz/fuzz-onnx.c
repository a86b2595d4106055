/* The walker: any bytes, whole and in pieces, end alike. */
#include <stdlib.h>
#include <string.h>

#include "mr.h"

int	LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static int
walk(const unsigned char *data, size_t n, uint64_t size, size_t piece,
    struct mr_err *e)
{
	struct mr_onnx_info info;
	struct mr_onnx *w;
	size_t at, k;
	int rc = 0;

	w = mr_onnx_new(size);
	for (at = 0; at < n && rc == 0; at += k) {
		k = n - at < piece ? n - at : piece;
		rc = mr_onnx_feed(w, data + at, k, e);
	}
	if (rc == 0)
		rc = mr_onnx_end(w, e);
	if (rc == 0) {
		mr_onnx_info(w, &info);
		if (info.ninputs == 0 || info.noutputs == 0)
			abort();
	}
	mr_onnx_free(w);
	return rc;
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct mr_err a = { "" }, b = { "" }, c = { "" };
	size_t piece;

	/* the last byte says how long the pieces are */
	piece = n > 0 && data[n - 1] % 8 > 0 ? data[n - 1] % 8 : 1;
	if (walk(data, n, n, n + 1, &a) != walk(data, n, UINT64_MAX, piece, &b))
		abort();
	walk(data, n, n, piece, &c);
	if (strcmp(a.text, c.text) != 0)
		abort();
	return 0;
}
