/* output_slices, read without unpickling: base64 (RFC 4648) of a pickled dict
 * name -> slice. A pickle machine (opcodes: Python's pickletools) that knows
 * texts, integers, None, builtins.slice and one dict, and refuses the rest. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mr.h"

enum {
	TEXT_MAX = 1 << 20,	/* bytes of the base64 text */
	OPS_MAX = 1 << 16,
	DEPTH_MAX = 4096,	/* values on the stack */
	MEMO_MAX = 8192,
	STRING_MAX = 1024,	/* bytes of a string */
	SLICES_MAX = 1024,
	PROTO_MAX = 5
};

enum kind {
	NOTHING, MARK, TEXT, INT, BOOL, NONE, TUPLE, LIST, DICT, SLICE_TYPE,
	SLICE
};
static const char *const kind_name[] = {
	"nothing", "a mark", "a string", "an integer", "a boolean", "None",
	"a tuple", "a list", "a dict", "the slice type", "a slice"
};

struct value {
	enum kind	 kind;
	const char	*s;	/* TEXT: not ended by NUL; part of the pickle
				 * or of the arena */
	size_t		 n;	/* its bytes; or the items of TUPLE or SLICE */
	int64_t		 num[3];	/* INT; items, as far as the first 3 */
	int		 has[3];	/* 0: that item is None */
};

struct machine {
	const unsigned char *start, *p, *end;
	const unsigned char *at;	/* the opcode being executed */
	const unsigned char *frame;	/* where the frame ends; NULL: none */
	unsigned	 proto;
	size_t		 ops, depth, room, nmemo, puts, narena;
	struct value	*stack;
	struct value	*memo;
	char		*arena;		/* twice the pickle's size */
	int		 dicts;
	struct mr_slices *out;
	struct mr_err	*e;
};

static int	bad(struct machine *m, const char *fmt, ...)
		    __attribute__((format(printf, 2, 3)));

/* Says what is wrong, and where its opcode is. */
static int
bad(struct machine *m, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return mr_fail(m->e, "output_slices: %s, at byte %td of the pickle",
	    text, m->at - m->start);
}

/* ---- bytes ---- */

/* The next N bytes, or NULL. C's and Python's unpicklers disagree about what
 * reads across the end of a frame, so that is refused. */
static const unsigned char *
take(struct machine *m, size_t n)
{
	const unsigned char *p = m->p;

	if ((size_t)(m->end - p) < n) {
		bad(m, "truncated: %zu bytes needed, %td are left", n,
		    m->end - p);
		return NULL;
	}
	if (m->frame != NULL && (size_t)(m->frame - p) < n) {
		bad(m, "an opcode reads across the end of its frame");
		return NULL;
	}
	m->p += n;
	return p;
}

/* A little-endian number of N bytes, at most 8. */
static int
little(struct machine *m, size_t n, uint64_t *v)
{
	const unsigned char *p;

	p = take(m, n);
	if (p == NULL)
		return -1;
	for (*v = 0; n > 0; n--)
		*v = *v << 8 | p[n - 1];
	return 0;
}

/* A line of N bytes, its newline taken but not counted. */
static const char *
line(struct machine *m, size_t *n)
{
	const unsigned char *nl;

	nl = memchr(m->p, '\n', (size_t)(m->end - m->p));
	if (nl == NULL) {
		bad(m, "truncated: a line without end");
		return NULL;
	}
	*n = (size_t)(nl - m->p);
	return (const char *)take(m, *n + 1);
}

/* ---- the stack ---- */

static int
push(struct machine *m, const struct value *v)
{
	if (m->depth == DEPTH_MAX)
		return bad(m, "more than %d values on the stack", DEPTH_MAX);
	if (m->depth == m->room) {
		m->room = m->room == 0 ? 256 : m->room * 2;
		m->stack = mr_realloc(m->stack, m->room * sizeof(*v));
	}
	m->stack[m->depth++] = *v;
	return 0;
}

static int
push_kind(struct machine *m, enum kind kind)
{
	struct value v = { .kind = kind };

	return push(m, &v);
}

static int
push_int(struct machine *m, int64_t n)
{
	struct value v = { .kind = INT, .num = { n }, .has = { 1 } };

	return push(m, &v);
}

static int
push_text(struct machine *m, const char *s, size_t n)
{
	struct value v = { .kind = TEXT, .s = s, .n = n };

	if (n > STRING_MAX)
		return bad(m, "a string of %zu bytes, at most %d are read", n,
		    STRING_MAX);
	if (!mr_text_ok(s, n, 0))
		return bad(m, "a string is not UTF-8 without control"
		    " characters");
	return push(m, &v);
}

/* Are there N values above the topmost mark? */
static int
need(struct machine *m, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (i == m->depth || m->stack[m->depth - 1 - i].kind == MARK)
			return bad(m, "an opcode finds %zu values, wanted %zu",
			    i, n);
	return 0;
}

/* How many values are above the topmost mark? */
static int
above_mark(struct machine *m, size_t *n)
{
	size_t i;

	for (i = m->depth; i > 0; i--)
		if (m->stack[i - 1].kind == MARK) {
			*n = m->depth - i;
			return 0;
		}
	return bad(m, "an opcode finds no mark");
}

/* ---- strings and integers as text: protocols 0 and 1 ---- */

/* raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX. Python writes every
 * backslash as \u005c, so another one is refused. */
static int
op_unicode(struct machine *m)
{
	char *text = m->arena + m->narena, *to = text;
	const char *s;
	size_t n, i, k, width;
	uint32_t c;
	int d;

	s = line(m, &n);
	if (s == NULL)
		return -1;
	for (i = 0; i < n; i += 1 + width) {
		c = (unsigned char)s[i];
		width = 0;
		if (c == '\\') {
			width = i + 1 < n && s[i + 1] == 'u' ? 5 :
			    i + 1 < n && s[i + 1] == 'U' ? 9 : 0;
			if (width == 0 || n - i <= width)
				return bad(m, "a backslash in a string begins"
				    " no \\uXXXX");
			for (c = 0, k = 2; k <= width; k++) {
				d = mr_hex_digit(s[i + k]);
				if (d == -1)
					return bad(m, "a \\u in a string is"
					    " not followed by hex digits");
				c = c << 4 | (uint32_t)d;
			}
		}
		if (c > 0x10ffff)
			return bad(m, "a string has a character beyond"
			    " U+10FFFF");
		to = mr_utf8_put(to, c);
	}
	m->narena = (size_t)(to - m->arena);
	return push_text(m, text, (size_t)(to - text));
}

/* -?(0|[1-9][0-9]*) without -0, in 64 bits: Python would also take spaces,
 * underscores, 0x1f and more. */
static int
integer(struct machine *m, const char *s, size_t n, int64_t *v)
{
	uint64_t u = 0, max = INT64_MAX;
	int minus = n > 0 && s[0] == '-';
	size_t i = minus ? 1 : 0;
	char shown[MR_SHOWN];

	max += minus ? 1 : 0;
	if (i == n || (s[i] == '0' && n > 1))
		goto wrong;
	for (; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			goto wrong;
		if (u > (max - (uint64_t)(s[i] - '0')) / 10)
			return bad(m, "an integer has more than 64 bits");
		u = u * 10 + (uint64_t)(s[i] - '0');
	}
	*v = minus ? -(int64_t)(u - 1) - 1 : (int64_t)u;
	return 0;
wrong:
	return bad(m, "\"%s\" is not a plain decimal integer",
	    mr_show(shown, s, n));
}

static int
op_int(struct machine *m)
{
	const char *s;
	size_t n;
	int64_t v = 0;

	s = line(m, &n);
	if (s == NULL)
		return -1;
	/* protocols 0 and 1 write False and True so */
	if (n == 2 && (memcmp(s, "00", 2) == 0 || memcmp(s, "01", 2) == 0))
		return push_kind(m, BOOL);
	return integer(m, s, n, &v) == -1 ? -1 : push_int(m, v);
}

static int
op_long(struct machine *m)
{
	const char *s;
	size_t n;
	int64_t v = 0;

	s = line(m, &n);
	if (s == NULL)
		return -1;
	if (n == 0 || s[n - 1] != 'L')
		return bad(m, "a long integer does not end in L");
	return integer(m, s, n - 1, &v) == -1 ? -1 : push_int(m, v);
}

static int
op_long1(struct machine *m)
{
	uint64_t n = 0, v = 0;

	if (little(m, 1, &n) == -1)
		return -1;
	if (n > 8)
		return bad(m, "an integer has more than 64 bits");
	if (little(m, n, &v) == -1)
		return -1;
	/* two's complement: the top bit of the last byte is the sign */
	if (n > 0 && n < 8 && v >> (8 * n - 1))
		v |= UINT64_MAX << 8 * n;
	return push_int(m, (int64_t)v);
}

static int
op_binint(struct machine *m, size_t width)
{
	uint64_t v;

	if (little(m, width, &v) == -1)
		return -1;
	return push_int(m, width == 4 ? (int32_t)(uint32_t)v : (int64_t)v);
}

static int
op_binunicode(struct machine *m, size_t width)
{
	const unsigned char *s;
	uint64_t n;

	if (little(m, width, &n) == -1)
		return -1;
	s = take(m, n);
	return s == NULL ? -1 : push_text(m, (const char *)s, n);
}

/* ---- the memo ---- */

static int
put(struct machine *m, uint64_t i)
{
	size_t n;

	if (need(m, 1) == -1)
		return -1;
	if (i >= MEMO_MAX)
		return bad(m, "memo slot %" PRIu64 ", at most %d are read", i,
		    MEMO_MAX);
	if (i >= m->nmemo) {
		n = (size_t)i + 256;
		m->memo = mr_realloc(m->memo, n * sizeof(*m->memo));
		memset(m->memo + m->nmemo, 0,
		    (n - m->nmemo) * sizeof(*m->memo));
		m->nmemo = n;
	}
	if (m->memo[i].kind != NOTHING)
		return bad(m, "memo slot %" PRIu64 " is written twice", i);
	m->memo[i] = m->stack[m->depth - 1];
	m->puts++;
	return 0;
}

static int
get(struct machine *m, uint64_t i)
{
	struct value v;

	if (i >= m->nmemo || m->memo[i].kind == NOTHING)
		return bad(m, "memo slot %" PRIu64 " was never written", i);
	v = m->memo[i];
	if (v.kind == DICT || v.kind == LIST || v.kind == TUPLE)
		return bad(m, "%s is fetched from the memo",
		    kind_name[v.kind]);
	return push(m, &v);
}

static int
op_memo(struct machine *m, size_t width, int (*act)(struct machine *, uint64_t))
{
	const char *s;
	uint64_t i;
	int64_t v = 0;
	size_t n;

	if (width > 0)
		return little(m, width, &i) == -1 ? -1 : act(m, i);
	s = line(m, &n);
	if (s == NULL || integer(m, s, n, &v) == -1)
		return -1;
	if (v < 0)
		return bad(m, "memo slot %" PRId64, v);
	return act(m, (uint64_t)v);
}

/* ---- the one callable, and what is made of it ---- */

static int
is(const char *s, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(s, word, n) == 0;
}

static int
global(struct machine *m, const char *mod, size_t nmod, const char *name,
    size_t nname)
{
	char a[MR_SHOWN], b[MR_SHOWN];

	/* Python maps the old name to the new one below protocol 3 only */
	if (is(name, nname, "slice") && (is(mod, nmod, "builtins") ||
	    (is(mod, nmod, "__builtin__") && m->proto < 3)))
		return push_kind(m, SLICE_TYPE);
	return bad(m, "the pickle names %s.%s, which could run code: only"
	    " builtins.slice is allowed", mr_show(a, mod, nmod),
	    mr_show(b, name, nname));
}

static int
op_global(struct machine *m)
{
	const char *mod, *name;
	size_t nmod, nname;

	mod = line(m, &nmod);
	if (mod == NULL)
		return -1;
	name = line(m, &nname);
	return name == NULL ? -1 : global(m, mod, nmod, name, nname);
}

static int
op_stack_global(struct machine *m)
{
	struct value mod, name;

	if (need(m, 2) == -1)
		return -1;
	name = m->stack[--m->depth];
	mod = m->stack[--m->depth];
	if (mod.kind != TEXT || name.kind != TEXT)
		return bad(m, "STACK_GLOBAL takes %s and %s, wanted two"
		    " strings", kind_name[mod.kind], kind_name[name.kind]);
	return global(m, mod.s, mod.n, name.s, name.n);
}

/* Makes a tuple of the N values on top, and of the mark below if MARKED. */
static int
tuple(struct machine *m, size_t n, int marked)
{
	struct value t = { .kind = TUPLE, .n = n };
	const struct value *v;
	size_t i;

	v = m->stack + m->depth - n;
	for (i = 0; i < n; i++) {
		if (v[i].kind != INT && v[i].kind != NONE)
			return bad(m, "a tuple holds %s, wanted integers or"
			    " None", kind_name[v[i].kind]);
		if (i < 3) {
			t.num[i] = v[i].num[0];
			t.has[i] = v[i].kind == INT;
		}
	}
	m->depth -= n + (marked ? 1 : 0);
	return push(m, &t);
}

static int
op_reduce(struct machine *m)
{
	struct value s, f;

	if (need(m, 2) == -1)
		return -1;
	s = m->stack[--m->depth];
	f = m->stack[--m->depth];
	if (f.kind != SLICE_TYPE)
		return bad(m, "REDUCE calls %s, wanted builtins.slice",
		    kind_name[f.kind]);
	if (s.kind != TUPLE)
		return bad(m, "slice gets %s, wanted a tuple",
		    kind_name[s.kind]);
	if (s.n < 1 || s.n > 3)
		return bad(m, "slice gets a tuple of %zu, wanted one to three",
		    s.n);
	s.kind = SLICE;
	if (s.n == 1) {		/* slice(stop) */
		s.num[1] = s.num[0];
		s.has[1] = s.has[0];
		s.has[0] = 0;
	}
	if (s.has[2] && s.num[2] == 0)
		return bad(m, "a slice has step 0");
	return push(m, &s);
}

/* ---- the dict ---- */

static int
new_dict(struct machine *m)
{
	if (m->dicts++ > 0)
		return bad(m, "a second dict, wanted one dict of slices");
	return push_kind(m, DICT);
}

static int
set(struct machine *m, const struct value *key, const struct value *v)
{
	struct mr_slices *out = m->out;
	struct mr_slice *s;
	char shown[MR_SHOWN];
	size_t i;

	if (key->kind != TEXT)
		return bad(m, "a key is %s, wanted a string",
		    kind_name[key->kind]);
	mr_show(shown, key->s, key->n);
	if (key->n == 0)
		return bad(m, "a key is empty");
	if (v->kind != SLICE)
		return bad(m, "%s is %s, wanted a slice", shown,
		    kind_name[v->kind]);
	for (i = 0; i < out->n; i++)
		if (is(key->s, key->n, out->slice[i].name))
			return bad(m, "the key %s is there twice", shown);
	if (out->n == SLICES_MAX)
		return bad(m, "more than %d slices", SLICES_MAX);
	out->slice = mr_realloc(out->slice, (out->n + 1) * sizeof(*s));
	s = &out->slice[out->n++];
	s->name = mr_malloc(key->n + 1);
	memcpy(s->name, key->s, key->n);
	s->name[key->n] = '\0';
	s->start = v->has[0] ? v->num[0] : 0;
	s->stop = v->has[1] ? v->num[1] : 0;
	s->step = v->has[2] ? v->num[2] : 0;
	s->has_start = v->has[0];
	s->has_stop = v->has[1];
	s->has_step = v->has[2];
	return 0;
}

/* Moves the N values on top, in pairs, into the dict. */
static int
set_pairs(struct machine *m, size_t n)
{
	const struct value *v = m->stack + m->depth - n;
	size_t i;

	if (n % 2 != 0)
		return bad(m, "a key without a value");
	for (i = 0; i < n; i += 2)
		if (set(m, &v[i], &v[i + 1]) == -1)
			return -1;
	m->depth -= n;
	return 0;
}

/* SETITEM, SETITEMS, APPEND and APPENDS: N values go into a KIND, which lies
 * below them and, if MARKED, below their mark. */
static int
op_store(struct machine *m, enum kind into, size_t n, int marked)
{
	const struct value *v;

	if (marked && above_mark(m, &n) == -1)
		return -1;
	if (!marked && need(m, n + 1) == -1)
		return -1;
	if (marked && m->depth < n + 2)
		return bad(m, "an opcode does not find %s", kind_name[into]);
	v = &m->stack[m->depth - n - (marked ? 2 : 1)];
	if (v->kind != into)
		return bad(m, "an opcode finds %s, wanted %s",
		    kind_name[v->kind], kind_name[into]);
	if (into == LIST)
		m->depth -= n;	/* a list ends up nowhere */
	else if (set_pairs(m, n) == -1)
		return -1;
	m->depth -= marked ? 1 : 0;
	return 0;
}

static int
op_dict(struct machine *m)
{
	size_t n = 0;

	if (above_mark(m, &n) == -1 || set_pairs(m, n) == -1)
		return -1;
	m->depth--;
	return new_dict(m);
}

static int
op_list(struct machine *m)
{
	size_t n = 0;

	if (above_mark(m, &n) == -1)
		return -1;
	m->depth -= n + 1;
	return push_kind(m, LIST);
}

static int
op_tuple(struct machine *m, size_t n, int marked)
{
	if (marked ? above_mark(m, &n) == -1 : need(m, n) == -1)
		return -1;
	return tuple(m, n, marked);
}

/* ---- the machine ---- */

static int
op_proto(struct machine *m)
{
	uint64_t v;

	if (m->ops != 0)
		return bad(m, "PROTO is not the first opcode");
	if (little(m, 1, &v) == -1)
		return -1;
	if (v > PROTO_MAX)
		return bad(m, "pickle protocol %" PRIu64 ", at most %d is"
		    " read", v, PROTO_MAX);
	m->proto = (unsigned)v;
	return 0;
}

static int
op_frame(struct machine *m)
{
	uint64_t n;

	if (m->frame != NULL)
		return bad(m, "a frame begins inside another");
	if (little(m, 8, &n) == -1)
		return -1;
	if (n > (uint64_t)(m->end - m->p))
		return bad(m, "truncated: a frame needs %" PRIu64
		    " bytes, %td are left", n, m->end - m->p);
	m->frame = m->p + n;
	return 0;
}

/* Opcodes that can run code or reach outside: named in the refusal. */
static int
op_other(struct machine *m, unsigned char op)
{
	/* INST, OBJ, BUILD, NEWOBJ, NEWOBJ_EX, EXT1, EXT2, EXT4, PERSID,
	 * BINPERSID, NEXT_BUFFER */
	if (op != 0 && strchr("iob\x81\x92\x82\x83\x84PQ\x97", op) != NULL)
		return bad(m, "opcode %s could run code",
		    mr_pickle_opcode(op));
	return bad(m, "opcode 0x%02x has no place in a dict of slices", op);
}

static int
execute(struct machine *m, unsigned char op)
{
	switch (op) {
	case 0x80: return op_proto(m);
	case 0x95: return op_frame(m);
	case '(': return push_kind(m, MARK);
	case '}': return new_dict(m);
	case ']': return push_kind(m, LIST);
	case 'N': return push_kind(m, NONE);
	case 0x88: case 0x89: return push_kind(m, BOOL);
	case 'K': return op_binint(m, 1);
	case 'M': return op_binint(m, 2);
	case 'J': return op_binint(m, 4);
	case 0x8a: return op_long1(m);
	case 'I': return op_int(m);
	case 'L': return op_long(m);
	case 0x8c: return op_binunicode(m, 1);
	case 'X': return op_binunicode(m, 4);
	case 'V': return op_unicode(m);
	case 0x94: return put(m, m->puts);
	case 'q': return op_memo(m, 1, put);
	case 'r': return op_memo(m, 4, put);
	case 'p': return op_memo(m, 0, put);
	case 'h': return op_memo(m, 1, get);
	case 'j': return op_memo(m, 4, get);
	case 'g': return op_memo(m, 0, get);
	case 'c': return op_global(m);
	case 0x93: return op_stack_global(m);
	case 'R': return op_reduce(m);
	case ')': return op_tuple(m, 0, 0);
	case 0x85: return op_tuple(m, 1, 0);
	case 0x86: return op_tuple(m, 2, 0);
	case 0x87: return op_tuple(m, 3, 0);
	case 't': return op_tuple(m, 0, 1);
	case 'l': return op_list(m);
	case 'd': return op_dict(m);
	case 's': return op_store(m, DICT, 2, 0);
	case 'u': return op_store(m, DICT, 0, 1);
	case 'a': return op_store(m, LIST, 1, 0);
	case 'e': return op_store(m, LIST, 0, 1);
	default: return op_other(m, op);
	}
}

static int
run(struct machine *m)
{
	const unsigned char *op;

	for (m->ops = 0; ; m->ops++) {
		m->at = m->p;
		if (m->p == m->frame)
			m->frame = NULL;
		if (m->p == m->end)
			return bad(m, "truncated: no STOP");
		if (m->ops == OPS_MAX)
			return bad(m, "more than %d opcodes", OPS_MAX);
		op = take(m, 1);
		if (op == NULL)
			return -1;
		if (*op == '.')
			break;
		if (execute(m, *op) == -1)
			return -1;
	}
	if (m->p != m->end)
		return bad(m, "%td bytes follow STOP", m->end - m->p);
	if (m->depth != 1)
		return bad(m, "%zu values are left, wanted one dict",
		    m->depth);
	if (m->stack[0].kind != DICT)
		return bad(m, "the pickle is %s, wanted a dict",
		    kind_name[m->stack[0].kind]);
	return 0;
}

/* ---- base64 ---- */

static int
base64_digit(char c)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at;

	at = c == '\0' ? NULL : strchr(set, c);
	return at == NULL ? -1 : (int)(at - set);
}

/* The bytes of S, *N of them; NULL if S is not base64. The caller frees. */
static unsigned char *
base64(const char *s, size_t *n, struct mr_err *e)
{
	unsigned char *buf;
	unsigned bits = 0;
	size_t digits = 0, pads = 0, i;
	int d;

	buf = mr_malloc(strlen(s) / 4 * 3 + 3);
	for (i = *n = 0; s[i] != '\0'; i++) {
		if (s[i] == '\n' || s[i] == '\r')
			continue;
		d = base64_digit(s[i]);
		if (s[i] == '=' && digits % 4 >= 2 &&
		    digits % 4 + pads < 4) {
			pads++;
			continue;
		}
		if (d == -1 || pads > 0) {
			mr_fail(e, "output_slices: character %zu is no base64:"
			    " wanted A-Z a-z 0-9 + / and = at the end", i + 1);
			free(buf);
			return NULL;
		}
		bits = bits << 6 | (unsigned)d;
		if (++digits % 4 != 1)
			buf[(*n)++] = (unsigned char)
			    (bits >> (6 - 2 * ((digits - 1) % 4)));
	}
	/* after 2 or 3 digits 4 or 2 bits are left over: zero, says RFC 4648 */
	d = digits % 4 == 2 ? 15 : digits % 4 == 3 ? 3 : 0;
	if ((digits + pads) % 4 != 0)
		mr_fail(e, "output_slices: base64 is cut off: %zu digits and"
		    " %zu of =", digits, pads);
	else if (bits & (unsigned)d)
		mr_fail(e, "output_slices: base64 ends in bits that are not"
		    " zero");
	else
		return buf;
	free(buf);
	return NULL;
}

int
mr_slices_parse(struct mr_slices *s, const char *text, struct mr_err *e)
{
	struct machine m;
	unsigned char *buf;
	size_t n;
	int rc;

	memset(s, 0, sizeof(*s));
	if (strlen(text) > TEXT_MAX)
		return mr_fail(e, "output_slices: longer than %d bytes",
		    TEXT_MAX);
	buf = base64(text, &n, e);
	if (buf == NULL)
		return -1;
	if (n == 0) {
		free(buf);
		return mr_fail(e, "output_slices: empty");
	}
	memset(&m, 0, sizeof(m));
	m.start = m.at = m.p = buf;
	m.end = buf + n;
	m.arena = mr_malloc(2 * n);
	m.out = s;
	m.e = e;
	rc = run(&m);
	if (rc == -1)
		mr_slices_free(s);
	free(m.stack);
	free(m.memo);
	free(m.arena);
	free(buf);
	return rc;
}

void
mr_slices_free(struct mr_slices *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		free(s->slice[i].name);
	free(s->slice);
	memset(s, 0, sizeof(*s));
}
