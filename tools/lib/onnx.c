/* A strict walker of ONNX models: structure, names and shapes, never weights.
 * Fields: onnx.proto; bytes: protobuf's wire format. What protobuf, openpilot
 * and tinygrad would read differently is refused. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "mr.h"

enum {
	DEPTH = 100,		/* nested messages: protobuf's own limit */
	NAME = 1024,		/* bytes of a name or a metadata key */
	TEXT = 1 << 20,		/* bytes of a metadata value */
	VALUES = 256,		/* graph inputs, or outputs */
	PROPS = 1024		/* entries of metadata_props */
};

enum wire { VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 };

enum message {
	MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, SPARSE, FUNCTION, TRAINING,
	VALUE, TYPE, TENSOR_TYPE, SHAPE, DIM, ENTRY, OPSET, SEGMENT,
	ANNOTATION, LIST_TYPE, MAP_TYPE, OPAQUE_TYPE, DEVICES, NODE_DEVICES,
	SHARDING, SHARDED_DIM, SHARDS, GROUPS
};

enum what {
	SKIP, ENTER, KEEP, COUNT, REFUSE,
	FLOATS, DOUBLES, VARINTS	/* packed numbers */
};

struct field {
	const char	*name;
	enum wire	 wire;
	int		 many;		/* may repeat */
	enum what	 what;
	enum message	 into;
};

#define ONE(name, wire)		{ name, wire, 0, SKIP, MODEL }
#define MANY(name, wire)	{ name, wire, 1, SKIP, MODEL }
#define TAKE(name, wire, what)	{ name, wire, 0, what, MODEL }
#define SUB(name, message)	{ name, LENGTH, 0, ENTER, message }
#define SUBS(name, message)	{ name, LENGTH, 1, ENTER, message }

/* Every message of onnx.proto. Repeated numbers have the one encoding, packed
 * or not, that tinygrad reads; packed ones may not come in pieces, since
 * tinygrad keeps the last. */
static const struct field schema[][32] = {
	[MODEL] = {
		[1] = TAKE("ir_version", VARINT, COUNT),
		[2] = ONE("producer_name", LENGTH),
		[3] = ONE("producer_version", LENGTH),
		[4] = ONE("domain", LENGTH),
		[5] = ONE("model_version", VARINT),
		[6] = ONE("doc_string", LENGTH),
		[7] = SUB("graph", GRAPH),
		[8] = SUBS("opset_import", OPSET),
		[14] = SUBS("metadata_props", ENTRY),
		[20] = SUBS("training_info", TRAINING),
		[25] = SUBS("functions", FUNCTION),
		[26] = SUBS("configuration", DEVICES),
	},
	[GRAPH] = {
		[1] = SUBS("node", NODE),
		[2] = ONE("name", LENGTH),
		[5] = SUBS("initializer", TENSOR),
		[10] = ONE("doc_string", LENGTH),
		[11] = SUBS("input", VALUE),
		[12] = SUBS("output", VALUE),
		[13] = SUBS("value_info", VALUE),
		[14] = SUBS("quantization_annotation", ANNOTATION),
		[15] = SUBS("sparse_initializer", SPARSE),
		[16] = SUBS("metadata_props", ENTRY),
	},
	[NODE] = {
		[1] = MANY("input", LENGTH),
		[2] = MANY("output", LENGTH),
		[3] = ONE("name", LENGTH),
		[4] = ONE("op_type", LENGTH),
		[5] = SUBS("attribute", ATTRIBUTE),
		[6] = ONE("doc_string", LENGTH),
		[7] = ONE("domain", LENGTH),
		[8] = ONE("overload", LENGTH),
		[9] = SUBS("metadata_props", ENTRY),
		[10] = SUBS("device_configurations", NODE_DEVICES),
	},
	[ATTRIBUTE] = {
		[1] = ONE("name", LENGTH),
		[2] = ONE("f", FIXED32),
		[3] = ONE("i", VARINT),
		[4] = ONE("s", LENGTH),
		[5] = SUB("t", TENSOR),
		[6] = SUB("g", GRAPH),
		[7] = MANY("floats", FIXED32),
		[8] = MANY("ints", VARINT),
		[9] = MANY("strings", LENGTH),
		[10] = SUBS("tensors", TENSOR),
		[11] = SUBS("graphs", GRAPH),
		[13] = ONE("doc_string", LENGTH),
		[14] = SUB("tp", TYPE),
		[15] = SUBS("type_protos", TYPE),
		[20] = ONE("type", VARINT),
		[21] = ONE("ref_attr_name", LENGTH),
		[22] = SUB("sparse_tensor", SPARSE),
		[23] = SUBS("sparse_tensors", SPARSE),
	},
	[TENSOR] = {
		[1] = MANY("dims", VARINT),
		[2] = ONE("data_type", VARINT),
		[3] = SUB("segment", SEGMENT),
		[4] = TAKE("float_data", LENGTH, FLOATS),
		[5] = TAKE("int32_data", LENGTH, VARINTS),
		[6] = MANY("string_data", LENGTH),
		[7] = TAKE("int64_data", LENGTH, VARINTS),
		[8] = ONE("name", LENGTH),
		[9] = ONE("raw_data", LENGTH),
		[10] = TAKE("double_data", LENGTH, DOUBLES),
		[11] = TAKE("uint64_data", LENGTH, VARINTS),
		[12] = ONE("doc_string", LENGTH),
		[13] = TAKE("external_data", LENGTH, REFUSE),
		[14] = TAKE("data_location", VARINT, COUNT),
		[16] = SUBS("metadata_props", ENTRY),
	},
	[SPARSE] = {
		[1] = SUB("values", TENSOR),
		[2] = SUB("indices", TENSOR),
		[3] = MANY("dims", VARINT),
	},
	[FUNCTION] = {
		[1] = ONE("name", LENGTH),
		[4] = MANY("input", LENGTH),
		[5] = MANY("output", LENGTH),
		[6] = MANY("attribute", LENGTH),
		[7] = SUBS("node", NODE),
		[8] = ONE("doc_string", LENGTH),
		[9] = SUBS("opset_import", OPSET),
		[10] = ONE("domain", LENGTH),
		[11] = SUBS("attribute_proto", ATTRIBUTE),
		[12] = SUBS("value_info", VALUE),
		[13] = ONE("overload", LENGTH),
		[14] = SUBS("metadata_props", ENTRY),
	},
	[TRAINING] = {
		[1] = SUB("initialization", GRAPH),
		[2] = SUB("algorithm", GRAPH),
		[3] = SUBS("initialization_binding", ENTRY),
		[4] = SUBS("update_binding", ENTRY),
	},
	[VALUE] = {
		[1] = TAKE("name", LENGTH, KEEP),
		[2] = SUB("type", TYPE),
		[3] = ONE("doc_string", LENGTH),
		[4] = SUBS("metadata_props", ENTRY),
	},
	[TYPE] = {
		[1] = SUB("tensor_type", TENSOR_TYPE),
		[4] = SUB("sequence_type", LIST_TYPE),
		[5] = SUB("map_type", MAP_TYPE),
		[6] = ONE("denotation", LENGTH),
		[7] = SUB("opaque_type", OPAQUE_TYPE),
		[8] = SUB("sparse_tensor_type", TENSOR_TYPE),
		[9] = SUB("optional_type", LIST_TYPE),
	},
	[TENSOR_TYPE] = {
		[1] = TAKE("elem_type", VARINT, COUNT),
		[2] = SUB("shape", SHAPE),
	},
	[SHAPE] = {
		[1] = SUBS("dim", DIM),
	},
	[DIM] = {
		[1] = TAKE("dim_value", VARINT, COUNT),
		[2] = ONE("dim_param", LENGTH),
		[3] = ONE("denotation", LENGTH),
	},
	[ENTRY] = {
		[1] = TAKE("key", LENGTH, KEEP),
		[2] = TAKE("value", LENGTH, KEEP),
	},
	[OPSET] = {
		[1] = ONE("domain", LENGTH),
		[2] = ONE("version", VARINT),
	},
	[SEGMENT] = {
		[1] = ONE("begin", VARINT),
		[2] = ONE("end", VARINT),
	},
	[ANNOTATION] = {
		[1] = ONE("tensor_name", LENGTH),
		[2] = SUBS("quant_parameter_tensor_names", ENTRY),
	},
	[LIST_TYPE] = {
		[1] = SUB("elem_type", TYPE),
	},
	[MAP_TYPE] = {
		[1] = ONE("key_type", VARINT),
		[2] = SUB("value_type", TYPE),
	},
	[OPAQUE_TYPE] = {
		[1] = ONE("domain", LENGTH),
		[2] = ONE("name", LENGTH),
	},
	[DEVICES] = {
		[1] = ONE("name", LENGTH),
		[2] = ONE("num_devices", VARINT),
		[3] = MANY("device", LENGTH),
	},
	[NODE_DEVICES] = {
		[1] = ONE("configuration_id", LENGTH),
		[2] = SUBS("sharding_spec", SHARDING),
		[3] = ONE("pipeline_stage", VARINT),
	},
	[SHARDING] = {
		[1] = ONE("tensor_name", LENGTH),
		[2] = MANY("device", VARINT),
		[3] = SUBS("index_to_device_group_map", GROUPS),
		[4] = SUBS("sharded_dim", SHARDED_DIM),
	},
	[SHARDED_DIM] = {
		[1] = ONE("axis", VARINT),
		[2] = SUBS("simple_sharding", SHARDS),
	},
	[SHARDS] = {
		[1] = ONE("dim_value", VARINT),
		[2] = ONE("dim_param", LENGTH),
		[3] = ONE("num_shards", VARINT),
	},
	[GROUPS] = {
		[1] = ONE("key", VARINT),
		[2] = MANY("value", VARINT),
	},
};
enum { FIELDS = 32 };

/* a later version's field: skipped, as every reader does */
static const struct field unknown = { "unknown field", VARINT, 1, SKIP, MODEL };

/* the fields that are looked at by number */
enum {
	F_GRAPH = 7, F_OPSET = 8, F_INPUT = 11, F_OUTPUT = 12, F_TYPE = 2,
	F_TENSOR_TYPE = 1, F_DENOTATION = 6, F_ELEM_TYPE = 1,
	F_DIM_VALUE = 1, F_DIM_PARAM = 2, F_VALUE = 2, F_LAST = 26
};

struct frame {			/* a message that is being walked */
	uint64_t	 start, end;	/* end UINT64_MAX: not known */
	uint32_t	 seen;		/* one bit for each field number */
	enum message	 message;
	const char	*name;		/* of the field that holds it */
	unsigned	 number;
};

enum state {
	AT_TAG, AT_NUMBER, AT_LENGTH, IN_SKIPPED, IN_KEPT, IN_VARINTS,
	IN_OTHER	/* the beginning says that this is no model */
};

struct mr_onnx {
	uint64_t	 size, pos;
	enum state	 state;
	struct frame	 frame[DEPTH];
	size_t		 depth;		/* of the innermost frame */

	uint64_t	 varint;	/* as far as it has been read */
	unsigned	 nvarint;	/* its bytes so far */
	const struct field *field;	/* the field being read */
	unsigned	 number;	/* its number */
	uint64_t	 at;		/* where its tag began */
	uint64_t	 need, left;	/* bytes of its body, and to come */
	unsigned	 run;		/* bytes of a packed varint so far */
	char		*kept;		/* its text */

	char		 head[MR_POINTER_MAX];
	size_t		 nhead;

	int64_t		 ir_version;
	int64_t		 dim;
	struct mr_onnx_value value;	/* the input or output being read */
	char		*key, *text;	/* the metadata entry being read */
	struct mr_onnx_value *values[2];	/* inputs, outputs */
	size_t		 nvalues[2];
	char		*keys[PROPS];
	size_t		 nkeys;
	char		*checkpoint, *slices;

	int		 failed;
	struct mr_err	 why;
};

static int	bad(struct mr_onnx *w, const char *fmt, ...)
		    __attribute__((format(printf, 2, 3)));

static int
bad(struct mr_onnx *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->why.text, sizeof(w->why.text), fmt, ap);
	va_end(ap);
	w->failed = 1;
	return -1;
}

/* the dotted name of the current field, cut at 200 bytes */
static const char *
where(const struct mr_onnx *w, char text[256])
{
	size_t i, n = 0;

	for (i = 1; i <= w->depth && n < 200; i++)
		n += (size_t)snprintf(text + n, 256 - n, "%s.",
		    w->frame[i].name);
	snprintf(text + n, 256 - n, "%s", w->field->name);
	return text;
}

/* ---- what is kept, once it is whole ---- */

/* Is the innermost message a metadata entry of the model, or does it describe
 * an input or output of the main graph? Others are only checked. */
static int
wanted(const struct mr_onnx *w)
{
	static const struct {
		enum message	 message;
		size_t		 depth;
	} place[] = {
		{ MODEL, 0 }, { ENTRY, 1 }, { VALUE, 2 }, { TYPE, 3 },
		{ TENSOR_TYPE, 4 }, { SHAPE, 5 }, { DIM, 6 }
	};
	const struct frame *f = w->frame;
	size_t i;

	for (i = 0; i < sizeof(place) / sizeof(place[0]); i++)
		if (place[i].message == f[w->depth].message &&
		    place[i].depth == w->depth)
			return w->depth < 2 || (f[1].number == F_GRAPH &&
			    (f[2].number == F_INPUT ||
			    f[2].number == F_OUTPUT));
	return 0;
}

/* "graph input img", or its place while the name is not known; an input or
 * output is always the second frame */
static const char *
subject(const struct mr_onnx *w, char text[128])
{
	const char *kind = w->frame[2].number == F_INPUT ? "input" : "output";
	const char *name = w->value.name;
	char shown[MR_SHOWN];

	if (name != NULL && name[0] != '\0')
		snprintf(text, 128, "graph %s %s", kind,
		    mr_show(shown, name, strlen(name)));
	else
		snprintf(text, 128, "graph %s %zu", kind,
		    w->nvalues[w->frame[2].number != F_INPUT] + 1);
	return text;
}

static int
add_value(struct mr_onnx *w, const struct frame *f)
{
	struct mr_onnx_value **list;
	char text[128];
	size_t i, *n;

	list = &w->values[f->number != F_INPUT];
	n = &w->nvalues[f->number != F_INPUT];
	if (w->value.name == NULL || w->value.name[0] == '\0')
		return bad(w, "%s has no name", subject(w, text));
	if (!(f->seen & 1u << F_TYPE))
		return bad(w, "%s has no type", subject(w, text));
	if (*n == VALUES)
		return bad(w, "graph has more than %d %s", VALUES,
		    f->number == F_INPUT ? "inputs" : "outputs");
	for (i = 0; i < *n; i++)
		if (strcmp((*list)[i].name, w->value.name) == 0)
			return bad(w, "%s: the name is there twice",
			    subject(w, text));
	*list = mr_realloc(*list, (*n + 1) * sizeof(**list));
	(*list)[(*n)++] = w->value;
	memset(&w->value, 0, sizeof(w->value));
	return 0;
}

static int
check_type(struct mr_onnx *w, const struct frame *f)
{
	uint32_t kinds = f->seen & ~(1u << F_DENOTATION);
	char text[128];

	if (kinds & (kinds - 1))
		return bad(w, "the type at byte %" PRIu64 " is of two kinds",
		    f->start);
	if (wanted(w) && kinds != 1u << F_TENSOR_TYPE)
		return bad(w, "%s is not a tensor", subject(w, text));
	return 0;
}

static int
add_dim(struct mr_onnx *w, const struct frame *f)
{
	char text[128];

	if (f->seen & 1u << F_DIM_VALUE && f->seen & 1u << F_DIM_PARAM)
		return bad(w, "the dimension at byte %" PRIu64
		    " has both a number and a name", f->start);
	if (!wanted(w))
		return 0;
	if (w->value.ndim == MR_ONNX_DIMS)
		return bad(w, "%s has more than %d dimensions",
		    subject(w, text), MR_ONNX_DIMS);
	w->value.dim[w->value.ndim++] = w->dim;
	w->dim = 0;
	return 0;
}

static int
add_prop(struct mr_onnx *w)
{
	char shown[MR_SHOWN];
	char **to;
	size_t i;

	if (w->key == NULL)
		w->key = mr_strdup("");
	for (i = 0; i < w->nkeys; i++)
		if (strcmp(w->keys[i], w->key) == 0)
			return bad(w, "metadata_props has two entries %s",
			    mr_show(shown, w->key, strlen(w->key)));
	if (w->nkeys == PROPS)
		return bad(w, "metadata_props has more than %d entries",
		    PROPS);
	to = strcmp(w->key, "model_checkpoint") == 0 ? &w->checkpoint :
	    strcmp(w->key, "output_slices") == 0 ? &w->slices : NULL;
	if (to != NULL)
		*to = w->text != NULL ? w->text : mr_strdup("");
	else
		free(w->text);
	w->text = NULL;
	w->keys[w->nkeys++] = w->key;
	w->key = NULL;
	return 0;
}

/* Closes the innermost message. */
static int
leave(struct mr_onnx *w)
{
	const struct frame *f = &w->frame[w->depth];
	char text[128];

	switch (f->message) {
	case GRAPH:
		if (w->depth == 1 && w->nvalues[0] == 0)
			return bad(w, "graph has no input");
		if (w->depth == 1 && w->nvalues[1] == 0)
			return bad(w, "graph has no output");
		break;
	case VALUE:
		if (wanted(w) && add_value(w, f) == -1)
			return -1;
		break;
	case TYPE:
		if (check_type(w, f) == -1)
			return -1;
		break;
	case TENSOR_TYPE:
		if (wanted(w) && !(f->seen & 1u << F_ELEM_TYPE))
			return bad(w, "%s has no elem_type",
			    subject(w, text));
		break;
	case DIM:
		if (add_dim(w, f) == -1)
			return -1;
		break;
	case ENTRY:
		if (wanted(w) && add_prop(w) == -1)
			return -1;
		break;
	default:
		break;
	}
	w->depth--;
	return 0;
}

/* A field is whole: closes the messages that end with it. */
static int
done(struct mr_onnx *w)
{
	w->state = AT_TAG;
	while (w->depth > 0 && w->pos == w->frame[w->depth].end)
		if (leave(w) == -1)
			return -1;
	return 0;
}

/* ---- one field ---- */

/* The varint of a field with a meaning. */
static int
take_number(struct mr_onnx *w)
{
	enum message m = w->frame[w->depth].message;
	uint64_t n = w->varint;
	char text[128];

	if (m == TENSOR && n != 0)
		return bad(w, "external data: the tensor at byte %" PRIu64
		    " has data_location %" PRId64 ", wanted 0: its data"
		    " must be in the file", w->frame[w->depth].start,
		    (int64_t)n);
	if (!wanted(w))
		return 0;
	if (m == MODEL) {
		if (n == 0 || n > INT64_MAX)
			return bad(w, "ir_version is %" PRId64
			    ", wanted 1 or more", (int64_t)n);
		w->ir_version = (int64_t)n;
	} else if (m == TENSOR_TYPE) {
		if (n == 0 || n > INT32_MAX)
			return bad(w, "%s: elem_type is %" PRId64
			    ", wanted 1 or more", subject(w, text),
			    (int64_t)n);
		w->value.elem_type = (int)n;
	} else if (m == DIM) {
		if (n > INT64_MAX)
			return bad(w, "%s: dimension %zu is %" PRId64
			    ", wanted 0 or more", subject(w, text),
			    w->value.ndim + 1, (int64_t)n);
		w->dim = (int64_t)n;
	}
	return 0;
}

/* The text of a field that is kept. */
static int
take_text(struct mr_onnx *w)
{
	enum message m = w->frame[w->depth].message;
	int value = m == ENTRY && w->number == F_VALUE;
	char text[256];

	w->kept[w->need] = '\0';
	if (!mr_text_ok(w->kept, (size_t)w->need, value))
		return bad(w, "%s at byte %" PRIu64 " is not text: wanted"
		    " UTF-8 without %s", where(w, text), w->at,
		    value ? "NUL" : "control characters");
	if (m == VALUE)
		w->value.name = w->kept;
	else if (value)
		w->text = w->kept;
	else
		w->key = w->kept;
	w->kept = NULL;
	return 0;
}

/* K bytes of a body have gone by. */
static int
pass(struct mr_onnx *w, uint64_t k)
{
	w->pos += k;
	w->left -= k;
	if (w->left > 0)
		return 0;
	if (w->state == IN_KEPT && take_text(w) == -1)
		return -1;
	if (w->state == IN_VARINTS && w->run > 0)
		return bad(w, "the %s at byte %" PRIu64 " end inside a"
		    " number", w->field->name, w->at);
	return done(w);
}

/* N bytes at P of packed varints. */
static int
packed(struct mr_onnx *w, const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		/* the tenth byte holds the 64th bit */
		if (++w->run == 10 && p[i] > 1)
			return bad(w, "a varint in the %s at byte %" PRIu64
			    " overflows 64 bits", w->field->name, w->at);
		if (!(p[i] & 0x80))
			w->run = 0;
	}
	return pass(w, n);
}

/* A body of N bytes begins. */
static int
body(struct mr_onnx *w, uint64_t n)
{
	const struct frame *f = &w->frame[w->depth];
	char text[256];

	/* subtracting from "not known" leaves more than any length */
	if (n > f->end - w->pos)
		return bad(w, "%s%s needs %" PRIu64 " bytes, %" PRIu64
		    " are left", w->depth == 0 ? "truncated: " : "",
		    where(w, text), n, f->end - w->pos);
	w->need = w->left = n;
	return 0;
}

static int
enter(struct mr_onnx *w)
{
	struct frame *f;
	char text[256];

	if (w->depth == DEPTH - 1)
		return bad(w, "%s at byte %" PRIu64 " is nested deeper than"
		    " %d messages", where(w, text), w->at, DEPTH);
	f = &w->frame[++w->depth];
	f->start = w->pos;
	f->end = w->pos + w->need;
	f->seen = 0;
	f->message = w->field->into;
	f->name = w->field->name;
	f->number = w->number;
	return done(w);
}

static int
keep(struct mr_onnx *w)
{
	int value = w->frame[w->depth].message == ENTRY &&
	    w->number == F_VALUE;
	uint64_t max = value ? TEXT : NAME;
	char text[256];

	if (w->need > max)
		return bad(w, "%s at byte %" PRIu64 " is %" PRIu64
		    " bytes, at most %" PRIu64 " are read", where(w, text),
		    w->at, w->need, max);
	w->kept = mr_malloc((size_t)w->need + 1);
	w->state = IN_KEPT;
	return w->need == 0 ? pass(w, 0) : 0;
}

/* A length has been read. */
static int
take_length(struct mr_onnx *w)
{
	enum what what = w->field->what;
	char text[256];

	if (body(w, w->varint) == -1)
		return -1;
	if (w->need > INT32_MAX)
		return bad(w, "%s is %" PRIu64 " bytes, the format's limit is"
		    " 2 GiB", where(w, text), w->need);
	if (what == ENTER)
		return enter(w);
	if (what == KEEP && wanted(w))
		return keep(w);
	if ((what == FLOATS && w->need % 4 != 0) ||
	    (what == DOUBLES && w->need % 8 != 0))
		return bad(w, "%s at byte %" PRIu64 " is %" PRIu64
		    " bytes, no whole count of numbers", where(w, text),
		    w->at, w->need);
	w->run = 0;
	w->state = what == VARINTS ? IN_VARINTS : IN_SKIPPED;
	return w->need == 0 ? pass(w, 0) : 0;
}

/* Which field is it, and may it be here? */
static int
identify(struct mr_onnx *w)
{
	struct frame *f = &w->frame[w->depth];
	unsigned wire = w->varint & 7;
	const char *rest;
	uint32_t bit;
	char text[256];

	w->number = (unsigned)(w->varint >> 3);
	w->field = w->number < FIELDS ? &schema[f->message][w->number] :
	    &unknown;
	if (w->field->name == NULL)
		w->field = &unknown;
	rest = w->depth == 0 && f->seen & 1u << F_GRAPH ?
	    "trailing bytes: " : "";
	if (w->number == 0)
		return bad(w, "%sfield number 0 at byte %" PRIu64, rest, w->at);
	if (wire == GROUP || wire == GROUP_END || wire > FIXED32)
		return bad(w, "%swire type %u at byte %" PRIu64
		    ", wanted 0, 1, 2 or 5", rest, wire, w->at);
	/* the gaps in ModelProto's numbers were never used */
	if (w->field == &unknown && w->depth == 0 && w->number < F_LAST)
		return bad(w, "%sunknown field number %u at byte %" PRIu64,
		    rest, w->number, w->at);
	if (w->field == &unknown)
		return 0;
	if (wire != w->field->wire)
		return bad(w, "%s at byte %" PRIu64 " has wire type %u,"
		    " wanted %u", where(w, text), w->at, wire,
		    w->field->wire);
	bit = 1u << w->number;
	if (f->seen & bit && !w->field->many)
		return bad(w, "a second %s at byte %" PRIu64 ": readers"
		    " disagree about which one counts", where(w, text),
		    w->at);
	f->seen |= bit;
	if (w->field->what == REFUSE)
		return bad(w, "external data: %s at byte %" PRIu64
		    ": the tensor's data must be in the file",
		    where(w, text), w->at);
	return 0;
}

/* A tag has been read. */
static int
take_tag(struct mr_onnx *w)
{
	if (identify(w) == -1)
		return -1;
	switch (w->varint & 7) {
	case VARINT:
		w->state = AT_NUMBER;
		return 0;
	case LENGTH:
		w->state = AT_LENGTH;
		return 0;
	default:
		w->state = IN_SKIPPED;
		return body(w, (w->varint & 7) == FIXED64 ? 8 : 4);
	}
}

/* One more byte of a varint: 1 when it is whole. Numbers have 64 bits; tags
 * and lengths have 32, and readers disagree about what is longer. */
static int
varint(struct mr_onnx *w, unsigned char c)
{
	unsigned max = w->state == AT_NUMBER ? 10 : 5;
	unsigned last = w->state == AT_NUMBER ? 1 : 15;

	if (w->nvarint == 0)
		w->varint = 0;
	if (++w->nvarint == max && c & 0x80)
		return bad(w, "varint at byte %" PRIu64
		    " is longer than %u bytes", w->pos - max + 1, max);
	if (w->nvarint == max && c > last)
		return bad(w, "varint at byte %" PRIu64
		    " overflows %s bits", w->pos - max + 1,
		    max == 10 ? "64" : "32");
	w->varint |= (uint64_t)(c & 0x7f) << 7 * (w->nvarint - 1);
	w->pos++;
	if (!(c & 0x80)) {
		w->nvarint = 0;
		return 1;
	}
	/* whoever shortened the message may have cut a varint in two */
	if (w->pos == w->frame[w->depth].end)
		return bad(w, "the varint at byte %" PRIu64
		    " goes on after the end of its message",
		    w->pos - w->nvarint);
	return 0;
}

/* One byte of a tag, a number or a length. */
static int
step(struct mr_onnx *w, unsigned char c)
{
	int whole;

	if (w->state == AT_TAG && w->nvarint == 0)
		w->at = w->pos;
	whole = varint(w, c);
	if (whole != 1)
		return whole;
	if (w->state == AT_TAG) {
		if (take_tag(w) == -1)
			return -1;
		if (w->pos == w->frame[w->depth].end)
			return bad(w, "the message ends after the tag at byte"
			    " %" PRIu64, w->at);
		return 0;
	}
	if (w->state == AT_LENGTH)
		return take_length(w);
	if (w->field->what == COUNT && take_number(w) == -1)
		return -1;
	return done(w);
}

/* ---- what is no model at all ---- */

/* Can a model begin with C? Text and other formats nearly never do. */
static int
begins_model(unsigned char c)
{
	const struct field *f;

	if (c & 0x80)
		return 1;	/* a tag of two bytes: let the walker say */
	if (c >> 3 == 0)
		return 0;
	f = &schema[MODEL][c >> 3];
	return f->name != NULL && f->wire == (enum wire)(c & 7);
}

/* Says what the input is, from its first bytes. */
static int
name_other(struct mr_onnx *w)
{
	struct mr_pointer p;
	struct mr_err e;
	char shown[MR_SHOWN];
	const char *s = w->head;
	size_t n = w->nhead;

	switch (n < MR_POINTER_MAX ? mr_pointer_parse(s, n, &p, &e) : 0) {
	case 1:
		return bad(w, "is an LFS pointer for oid %s, size %" PRIu64
		    ": fetch it first", p.oid, p.size);
	case -1:
		return bad(w, "is an LFS pointer that must be refused: %s",
		    e.text);
	}
	if (n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
		s += 3, n -= 3;
	while (n > 0 && strchr(" \t\r\n", *s) != NULL && *s != '\0')
		s++, n--;
	mr_show(shown, s, n);
	if (n > 0 && *s == '<')
		return bad(w, "is an HTML or XML page, wanted an ONNX model:"
		    " it begins \"%s\"", shown);
	if (strchr(shown, '?') == NULL || mr_text_ok(s, n, 0))
		return bad(w, "is text, wanted an ONNX model: it begins"
		    " \"%s\"", shown);
	return bad(w, "is not an ONNX model: it begins with byte 0x%02x",
	    (unsigned char)w->head[0]);
}

/* ---- the walker ---- */

struct mr_onnx *
mr_onnx_new(uint64_t size)
{
	struct mr_onnx *w;

	w = mr_malloc(sizeof(*w));
	memset(w, 0, sizeof(*w));
	w->size = size;
	w->frame[0].end = size;
	w->frame[0].message = MODEL;
	w->field = &unknown;
	return w;
}

void
mr_onnx_free(struct mr_onnx *w)
{
	size_t i, k;

	if (w == NULL)
		return;
	for (i = 0; i < 2; i++) {
		for (k = 0; k < w->nvalues[i]; k++)
			free(w->values[i][k].name);
		free(w->values[i]);
	}
	for (i = 0; i < w->nkeys; i++)
		free(w->keys[i]);
	free(w->value.name);
	free(w->kept);
	free(w->key);
	free(w->text);
	free(w->checkpoint);
	free(w->slices);
	free(w);
}

/* Takes what it can of N bytes at P in one go; returns how many. */
static size_t
take(struct mr_onnx *w, const unsigned char *p, size_t n)
{
	if (w->pos == 0 && w->state == AT_TAG && !begins_model(*p))
		w->state = IN_OTHER;
	switch (w->state) {
	case IN_SKIPPED:
	case IN_KEPT:
	case IN_VARINTS:
		if (n > w->left)
			n = (size_t)w->left;
		if (w->state == IN_KEPT)
			memcpy(w->kept + (w->need - w->left), p, n);
		if (w->state == IN_VARINTS)
			packed(w, p, n);
		else
			pass(w, n);
		return n;
	case IN_OTHER:
		if (n > sizeof(w->head) - w->nhead)
			n = sizeof(w->head) - w->nhead;
		memcpy(w->head + w->nhead, p, n);
		w->nhead += n;
		w->pos += n;
		if (w->nhead == sizeof(w->head))
			name_other(w);
		return n;
	default:
		step(w, *p);
		return 1;
	}
}

int
mr_onnx_feed(struct mr_onnx *w, const void *buf, size_t n, struct mr_err *e)
{
	const unsigned char *p = buf;
	size_t k;

	for (; n > 0 && !w->failed; p += k, n -= k) {
		k = 0;
		if (w->pos == w->size)
			bad(w, "trailing bytes: the input goes on after %"
			    PRIu64 " bytes", w->size);
		else
			k = take(w, p, n);
		/* protobuf's own limit; the first bytes may say more */
		if (!w->failed && w->state != IN_OTHER &&
		    (w->pos > INT32_MAX || (w->size > INT32_MAX &&
		    w->size != UINT64_MAX)))
			bad(w, "is larger than 2 GiB, the format's limit");
	}
	if (!w->failed)
		return 0;
	*e = w->why;
	return -1;
}

/* What is missing at the end of the input? */
static int
finish(struct mr_onnx *w)
{
	const struct frame *f = w->frame;

	if (w->state == IN_OTHER)
		return name_other(w);
	if (w->pos == 0)
		return bad(w, "is empty, wanted an ONNX model");
	if (w->depth > 0)
		return bad(w, "truncated: %s needs %" PRIu64 " bytes, %" PRIu64
		    " are left", f[1].name, f[1].end - f[1].start,
		    w->pos - f[1].start);
	if (w->state == IN_SKIPPED || w->state == IN_KEPT ||
	    w->state == IN_VARINTS)
		return bad(w, "truncated: %s needs %" PRIu64 " bytes, %" PRIu64
		    " are left", w->field->name, w->need, w->need - w->left);
	if (w->state != AT_TAG || w->nvarint > 0)
		return bad(w, "truncated in the field at byte %" PRIu64,
		    w->at);
	if (w->size != UINT64_MAX && w->pos < w->size)
		return bad(w, "truncated: the input ends after %" PRIu64
		    " bytes, wanted %" PRIu64, w->pos, w->size);
	if (w->ir_version == 0)
		return bad(w, "has no ir_version");
	if (!(f->seen & 1u << F_GRAPH))
		return bad(w, "has no graph");
	/* onnx: from IR version 3 on, a model says its operator sets */
	if (w->ir_version >= 3 && !(f->seen & 1u << F_OPSET))
		return bad(w, "has no opset_import");
	return 0;
}

int
mr_onnx_end(struct mr_onnx *w, struct mr_err *e)
{
	if (!w->failed && finish(w) == 0)
		return 0;
	*e = w->why;
	return -1;
}

void
mr_onnx_info(const struct mr_onnx *w, struct mr_onnx_info *info)
{
	info->inputs = w->values[0];
	info->ninputs = w->nvalues[0];
	info->outputs = w->values[1];
	info->noutputs = w->nvalues[1];
	info->checkpoint = w->checkpoint;
	info->slices = w->slices;
}

/* ---- files ---- */

/* Walks FD. Where it can seek it jumps over what is not kept, and reads little
 * after a jump: the next tensor's header is some 40 bytes. */
static int
walk(struct mr_onnx *w, int fd, int seekable, struct mr_err *e)
{
	size_t want = 64 << 10;
	ssize_t got = 1;
	char *buf;
	int rc = 0;

	buf = mr_malloc(MR_BUF);
	while (rc == 0 && got > 0) {
		got = mr_read(fd, buf, want);
		if (got > 0)
			rc = mr_onnx_feed(w, buf, (size_t)got, e);
		if (rc == 0 && seekable && w->state == IN_SKIPPED) {
			pass(w, w->left);
			rc = w->failed ? -1 : 0;
			*e = w->why;
			want = 4 << 10;
			if (lseek(fd, (off_t)w->pos, SEEK_SET) == -1)
				got = -1;
		} else if (want < MR_BUF) {
			want *= 4;
		}
	}
	free(buf);
	if (rc == 0 && got == -1)
		return mr_fail(e, "read: %s", strerror(errno));
	if (rc == 0)
		rc = mr_onnx_end(w, e);
	errno = 0;
	return rc;
}

int
mr_onnx_file(const char *path, struct mr_onnx **w, struct mr_err *e)
{
	struct mr_err why;
	struct stat st;
	int fd, rc, reg, saved;

	*w = NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return mr_fail(e, "%s: %s", path, strerror(errno));
	reg = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	*w = mr_onnx_new(reg ? (uint64_t)st.st_size : UINT64_MAX);
	rc = walk(*w, fd, reg, &why);
	saved = errno;
	close(fd);
	if (rc == -1) {
		mr_onnx_free(*w);
		*w = NULL;
		mr_fail(e, "%s: %s", path, why.text);
	}
	errno = saved;
	return rc;
}
