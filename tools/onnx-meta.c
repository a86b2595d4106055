/* Prints an ONNX model's metadata, as JSON or as the pickle openpilot reads. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

static const char usage_line[] = "usage: onnx-meta [-p] FILE";

/* ---- JSON ---- */

static void
json_slices(const struct mr_slices *s)
{
	const struct mr_slice *v;
	size_t i;

	putchar('{');
	for (i = 0; i < s->n; i++) {
		v = &s->slice[i];
		if (i > 0)
			printf(", ");
		mr_json_quote(stdout, v->name);
		printf(v->has_start ? ": [%lld, " : ": [null, ",
		    (long long)v->start);
		printf(v->has_stop ? "%lld, " : "null, ", (long long)v->stop);
		printf(v->has_step ? "%lld]" : "null]", (long long)v->step);
	}
	putchar('}');
}

/* element types by the numbers of TensorProto.DataType */
static void
json_types(const struct mr_onnx_value *v, size_t n)
{
	size_t i;

	putchar('{');
	for (i = 0; i < n; i++) {
		if (i > 0)
			printf(", ");
		mr_json_quote(stdout, v[i].name);
		printf(": %d", v[i].elem_type);
	}
	putchar('}');
}

static void
json(const struct mr_onnx_info *m, const struct mr_slices *s)
{
	printf("{\"model_checkpoint\": ");
	if (m->checkpoint != NULL)
		mr_json_quote(stdout, m->checkpoint);
	else
		printf("null");
	printf(", \"output_slices\": ");
	json_slices(s);
	printf(", \"input_shapes\": ");
	mr_json_shapes(stdout, m->inputs, m->ninputs);
	printf(", \"output_shapes\": ");
	mr_json_shapes(stdout, m->outputs, m->noutputs);
	printf(", \"input_types\": ");
	json_types(m->inputs, m->ninputs);
	printf(", \"output_types\": ");
	json_types(m->outputs, m->noutputs);
	printf("}\n");
}

/* ---- pickle, protocol 4: opcodes as in Python's pickletools ---- */

/* N bytes of V, little-endian */
static void
little(uint64_t v, int n)
{
	for (; n > 0; n--, v >>= 8)
		putchar((int)(v & 0xff));
}

static void
pkl_text(const char *s)
{
	size_t n;

	n = strlen(s);
	putchar(n < 256 ? 0x8c : 'X');
	little(n, n < 256 ? 1 : 4);
	fwrite(s, 1, n, stdout);
}

/* the shortest form; 8a is two's complement without needless bytes */
static void
pkl_int(int64_t v)
{
	int n;

	if (v >= 0 && v <= 0xff) {
		putchar('K');
		little((uint64_t)v, 1);
	} else if (v >= 0 && v <= 0xffff) {
		putchar('M');
		little((uint64_t)v, 2);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		putchar('J');
		little((uint64_t)v, 4);
	} else {
		for (n = 5; n < 8; n++)
			if (v >= -((int64_t)1 << (8 * n - 1)) &&
			    v < (int64_t)1 << (8 * n - 1))
				break;
		putchar(0x8a);
		little((uint64_t)n, 1);
		little((uint64_t)v, n);
	}
}

static void
pkl_int_or_none(int has, int64_t v)
{
	if (has)
		pkl_int(v);
	else
		putchar('N');
}

static void
pkl_slices(const struct mr_slices *s)
{
	const struct mr_slice *v;
	size_t i;

	putchar('}');
	if (s->n == 0)
		return;
	putchar('(');
	for (i = 0; i < s->n; i++) {
		v = &s->slice[i];
		pkl_text(v->name);
		pkl_text("builtins");
		pkl_text("slice");
		putchar(0x93);
		pkl_int_or_none(v->has_start, v->start);
		pkl_int_or_none(v->has_stop, v->stop);
		pkl_int_or_none(v->has_step, v->step);
		putchar(0x87);
		putchar('R');
	}
	putchar('u');
}

static void
pkl_shapes(const struct mr_onnx_value *v, size_t n)
{
	size_t i, k;

	putchar('}');
	putchar('(');
	for (i = 0; i < n; i++) {
		pkl_text(v[i].name);
		if (v[i].ndim > 3)
			putchar('(');
		for (k = 0; k < v[i].ndim; k++)
			pkl_int(v[i].dim[k]);
		if (v[i].ndim == 0)
			putchar(')');
		else
			putchar(v[i].ndim > 3 ? 't' : 0x84 + (int)v[i].ndim);
	}
	putchar('u');
}

static void
pickle(const struct mr_onnx_info *m, const struct mr_slices *s)
{
	fputs("\x80\x04}(", stdout);
	pkl_text("model_checkpoint");
	if (m->checkpoint != NULL)
		pkl_text(m->checkpoint);
	else
		putchar('N');
	pkl_text("output_slices");
	pkl_slices(s);
	pkl_text("input_shapes");
	pkl_shapes(m->inputs, m->ninputs);
	pkl_text("output_shapes");
	pkl_shapes(m->outputs, m->noutputs);
	printf("u.");
}

/* ---- the tool ---- */

static int
print(const char *path, int as_pickle)
{
	struct mr_onnx_info info;
	struct mr_slices s;
	struct mr_onnx *w;
	struct mr_err e;
	int status = MR_NO;

	if (mr_onnx_file(path, &w, &e) == -1) {
		status = errno == 0 ? MR_NO : MR_UNFIT;
		warnx("%s", e.text);
		return status;
	}
	mr_onnx_info(w, &info);
	if (info.slices == NULL) {
		warnx("%s: no output_slices in metadata_props, wanted the"
		    " slices of a driving model", path);
	} else if (mr_slices_parse(&s, info.slices, &e) == -1) {
		warnx("%s: %s", path, e.text);
	} else {
		if (as_pickle)
			pickle(&info, &s);
		else
			json(&info, &s);
		mr_slices_free(&s);
		status = MR_OK;
	}
	mr_onnx_free(w);
	return status;
}

int
main(int argc, char *argv[])
{
	int c, as_pickle = 0;

	while ((c = getopt(argc, argv, "hpV")) != -1)
		switch (c) {
		case 'p':
			as_pickle = 1;
			break;
		case 'h':
			puts(usage_line);
			return mr_finish(MR_OK);
		case 'V':
			return mr_version();
		default:
			goto bad;
		}
	if (argc - optind != 1)
		goto bad;
	return mr_finish(print(argv[optind], as_pickle));
bad:
	fprintf(stderr, "%s\n", usage_line);
	return mr_finish(MR_UNFIT);
}
