/* What a pickle imports, found by a pickle machine that runs nothing: stack
 * and memo hold no values, only what is known of them. Opcodes: Python's
 * pickletools; the frames of an out-of-band artifact: man/catalog.5. A pickle
 * inside a string of bytes is data, as it is to Python. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mr.h"

enum {
	OPS_MAX = 1 << 24,	/* opcodes */
	DEPTH_MAX = 1 << 20,	/* values on the stack */
	MARKS_MAX = 1 << 14,	/* one in another */
	MEMO_MAX = 1 << 22,	/* slots */
	NAMES_MAX = 1 << 18,	/* different strings that may be names */
	IMPORTS_MAX = 1 << 10,	/* different ones */
	NAME_MAX_BYTES = 255,	/* a longer string is no name */
	HEAD = 1 + 8 + NAME_MAX_BYTES	/* of an opcode, what is looked at */
};

/* What is known of a value: its kind and, of a name or a global, which one:
 * kind + index * KINDS. */
enum kind {
	VALUE, STRING, NAME, GLOBAL, OBJECT, TUPLE, LIST, DICT, KINDS
};
static const char *const kind_name[KINDS] = {
	"a value", "a string that is no name", "a string", "a global",
	"an object", "a tuple", "a list", "a dict"
};

/* how an opcode is refused, if not for what it finds */
enum refusal {
	ALIEN, TAKEN, CALLS, REGISTRY, PERSISTENT, CHOOSES, OLDER
};
static const char *const refusal_text[] = {
	[ALIEN] = "occurs in no artifact",
	[CALLS] = "could run code, and occurs in no artifact",
	[REGISTRY] = "imports by a number: the name is not known",
	[PERSISTENT] = "asks the loader for an object: which, is not known",
	[CHOOSES] = "chooses its memo slot, maybe one in use: wanted MEMOIZE",
	[OLDER] = "is of an older protocol, in which it could run code"
};

/* argument bytes; COUNTED: they tell how many more follow */
static const struct op {
	const char	*name;
	unsigned char	 width, counted, refusal;
} ops[256] = {
	[0x80] = { "PROTO", 1, 0, TAKEN },
	[0x95] = { "FRAME", 8, 0, TAKEN },
	['.'] = { "STOP", 0, 0, TAKEN },
	['('] = { "MARK", 0, 0, TAKEN },
	['N'] = { "NONE", 0, 0, TAKEN },
	[0x88] = { "NEWTRUE", 0, 0, TAKEN },
	[0x89] = { "NEWFALSE", 0, 0, TAKEN },
	['J'] = { "BININT", 4, 0, TAKEN },
	['K'] = { "BININT1", 1, 0, TAKEN },
	['M'] = { "BININT2", 2, 0, TAKEN },
	[0x8a] = { "LONG1", 1, 1, TAKEN },
	['G'] = { "BINFLOAT", 8, 0, TAKEN },
	['B'] = { "BINBYTES", 4, 1, TAKEN },
	['C'] = { "SHORT_BINBYTES", 1, 1, TAKEN },
	[0x8e] = { "BINBYTES8", 8, 1, TAKEN },
	[0x96] = { "BYTEARRAY8", 8, 1, TAKEN },
	[0x97] = { "NEXT_BUFFER", 0, 0, TAKEN },
	['X'] = { "BINUNICODE", 4, 1, TAKEN },
	[0x8c] = { "SHORT_BINUNICODE", 1, 1, TAKEN },
	[')'] = { "EMPTY_TUPLE", 0, 0, TAKEN },
	[0x85] = { "TUPLE1", 0, 0, TAKEN },
	[0x86] = { "TUPLE2", 0, 0, TAKEN },
	[0x87] = { "TUPLE3", 0, 0, TAKEN },
	['t'] = { "TUPLE", 0, 0, TAKEN },
	[']'] = { "EMPTY_LIST", 0, 0, TAKEN },
	['a'] = { "APPEND", 0, 0, TAKEN },
	['e'] = { "APPENDS", 0, 0, TAKEN },
	['}'] = { "EMPTY_DICT", 0, 0, TAKEN },
	['s'] = { "SETITEM", 0, 0, TAKEN },
	['u'] = { "SETITEMS", 0, 0, TAKEN },
	[0x94] = { "MEMOIZE", 0, 0, TAKEN },
	['h'] = { "BINGET", 1, 0, TAKEN },
	['j'] = { "LONG_BINGET", 4, 0, TAKEN },
	[0x93] = { "STACK_GLOBAL", 0, 0, TAKEN },
	['R'] = { "REDUCE", 0, 0, TAKEN },
	[0x81] = { "NEWOBJ", 0, 0, TAKEN },
	['b'] = { "BUILD", 0, 0, TAKEN },
	/* refused */
	['i'] = { "INST", 0, 0, CALLS },
	['o'] = { "OBJ", 0, 0, CALLS },
	[0x92] = { "NEWOBJ_EX", 0, 0, CALLS },
	['c'] = { "GLOBAL", 0, 0, OLDER },
	[0x82] = { "EXT1", 0, 0, REGISTRY },
	[0x83] = { "EXT2", 0, 0, REGISTRY },
	[0x84] = { "EXT4", 0, 0, REGISTRY },
	['P'] = { "PERSID", 0, 0, PERSISTENT },
	['Q'] = { "BINPERSID", 0, 0, PERSISTENT },
	['p'] = { "PUT", 0, 0, CHOOSES },
	['q'] = { "BINPUT", 0, 0, CHOOSES },
	['r'] = { "LONG_BINPUT", 0, 0, CHOOSES },
	['g'] = { "GET", 0, 0, ALIEN },
	['0'] = { "POP", 0, 0, ALIEN },
	['1'] = { "POP_MARK", 0, 0, ALIEN },
	['2'] = { "DUP", 0, 0, ALIEN },
	['F'] = { "FLOAT", 0, 0, ALIEN },
	['I'] = { "INT", 0, 0, ALIEN },
	['L'] = { "LONG", 0, 0, ALIEN },
	[0x8b] = { "LONG4", 0, 0, ALIEN },
	['S'] = { "STRING", 0, 0, ALIEN },
	['T'] = { "BINSTRING", 0, 0, ALIEN },
	['U'] = { "SHORT_BINSTRING", 0, 0, ALIEN },
	['V'] = { "UNICODE", 0, 0, ALIEN },
	[0x8d] = { "BINUNICODE8", 0, 0, ALIEN },
	['d'] = { "DICT", 0, 0, ALIEN },
	['l'] = { "LIST", 0, 0, ALIEN },
	[0x8f] = { "EMPTY_SET", 0, 0, ALIEN },
	[0x90] = { "ADDITEMS", 0, 0, ALIEN },
	[0x91] = { "FROZENSET", 0, 0, ALIEN },
	[0x98] = { "READONLY_BUFFER", 0, 0, ALIEN }
};

/* An array that grows: its room doubles. */
struct grown {
	uint32_t	*v;
	size_t		 n, room;
};

enum state { FORM, OPCODES, BUFFERS, FAILED };

struct mr_pickle {
	enum state	 state;
	uint64_t	 size;		/* of the whole; UINT64_MAX: unknown */
	uint64_t	 pos;		/* where the next item begins */
	uint64_t	 end;		/* of the opcodes; or unknown */
	uint64_t	 frame;		/* where the frame ends; 0: none */
	uint64_t	 at;		/* of the opcode being executed */
	uint64_t	 skip;		/* bytes to come that nobody looks at */
	int		 framed;	/* out of band */
	uint64_t	 nops, buffers;	/* buffers: still to come */

	const unsigned char *in;	/* what is fed */
	size_t		 left;
	unsigned char	 head[HEAD];	/* an item that came in pieces */
	size_t		 nhead;

	struct grown	 stack, marks, memo;
	struct grown	 names;		/* where each lies in TEXT */
	struct grown	 table;		/* hashed: index of a name + 1 */
	char		*text;
	size_t		 ntext, text_room;
	struct mr_import *import;
	size_t		 nimport;
	const struct mr_imports *list;	/* NULL: none */
	char		 why[sizeof(((struct mr_err *)0)->text)];
};

static int	bad(struct mr_pickle *p, const char *fmt, ...)
		    __attribute__((format(printf, 2, 3)));

/* Keeps what is wrong and where; all further calls say the same. */
static int
bad(struct mr_pickle *p, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(p->why, sizeof(p->why), "%s, at byte %" PRIu64, text, p->at);
	p->state = FAILED;
	return -1;
}

const char *
mr_pickle_opcode(unsigned char op)
{
	return ops[op].name;
}

/* ---- bytes ---- */

/* The next N bytes, at most HEAD, which stay; NULL: more is to be fed. */
static const unsigned char *
peek(struct mr_pickle *p, size_t n)
{
	size_t more;

	if (p->nhead == 0 && p->left >= n)
		return p->in;
	if (p->nhead < n) {
		more = n - p->nhead < p->left ? n - p->nhead : p->left;
		if (more > 0)
			memcpy(p->head + p->nhead, p->in, more);
		p->nhead += more;
		p->in += more;
		p->left -= more;
	}
	return p->nhead >= n ? p->head : NULL;
}

/* Drops N bytes that were peeked. */
static void
drop(struct mr_pickle *p, size_t n)
{
	if (p->nhead == 0) {
		p->in += n;
		p->left -= n;
		return;
	}
	p->nhead -= n;
	memmove(p->head, p->head + n, p->nhead);
}

/* Takes N bytes that were peeked, and SKIP that nobody looks at. */
static void
take(struct mr_pickle *p, size_t n, uint64_t skip)
{
	drop(p, n);
	p->pos += n + skip;
	p->skip = skip;
}

/* A little-endian number of N bytes. */
static uint64_t
little(const unsigned char *s, size_t n)
{
	uint64_t v;

	for (v = 0; n > 0; n--)
		v = v << 8 | s[n - 1];
	return v;
}

/* Do N bytes from POS fit where they must? */
static int
fits(struct mr_pickle *p, uint64_t n)
{
	if (n > p->end - p->pos)
		return bad(p, "truncated: %" PRIu64 " bytes needed, %" PRIu64
		    " are left", n, p->end - p->pos);
	/* unpicklers disagree about what reads across the end of a frame */
	if (p->frame != 0 && n > p->frame - p->pos)
		return bad(p, "an opcode reads across the end of its frame");
	return 0;
}

/* ---- arrays, names ---- */

static void
grow(struct grown *g, uint32_t v)
{
	if (g->n == g->room) {
		g->room = g->room == 0 ? 1024 : g->room * 2;
		g->v = mr_realloc(g->v, g->room * sizeof(*g->v));
	}
	g->v[g->n++] = v;
}

static const char *
name_of(const struct mr_pickle *p, uint32_t i)
{
	return p->text + p->names.v[i];
}

static uint32_t
hash(const char *s)
{
	uint32_t h;

	for (h = 2166136261U; *s != '\0'; s++)	/* FNV-1a */
		h = (h ^ (unsigned char)*s) * 16777619U;
	return h;
}

/* The place of S in the table: of the name, or where it would go. */
static size_t
place(const struct mr_pickle *p, const char *s)
{
	size_t i;

	for (i = hash(s) & (p->table.room - 1); p->table.v[i] != 0;
	    i = (i + 1) & (p->table.room - 1))
		if (strcmp(name_of(p, p->table.v[i] - 1), s) == 0)
			break;
	return i;
}

/* The table, twice as large; it is never more than half full. */
static void
rehash(struct mr_pickle *p)
{
	uint32_t i;

	p->table.room = p->table.room == 0 ? 4096 : p->table.room * 2;
	free(p->table.v);
	p->table.v = mr_malloc(p->table.room * sizeof(*p->table.v));
	memset(p->table.v, 0, p->table.room * sizeof(*p->table.v));
	for (i = 0; i < p->names.n; i++)
		p->table.v[place(p, name_of(p, i))] = i + 1;
}

/* Could it be a module or a name: letters, digits, _ and dots? */
static int
may_be_name(const unsigned char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || s[i] == '_' ||
		    (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '.' ||
		    (s[i] >= '0' && s[i] <= '9')))
			return 0;
	return n > 0;
}

/* What is known of the string S: which name it is, the same for the same. */
static int
string(struct mr_pickle *p, const unsigned char *s, size_t n, uint32_t *v)
{
	char name[NAME_MAX_BYTES + 1];
	size_t at;

	*v = STRING;
	if (!may_be_name(s, n))
		return 0;
	memcpy(name, s, n);
	name[n] = '\0';
	if (p->names.n * 2 >= p->table.room)
		rehash(p);
	at = place(p, name);
	if (p->table.v[at] == 0) {
		if (p->names.n == NAMES_MAX)
			return bad(p, "more than %d different names",
			    NAMES_MAX);
		if (p->text_room - p->ntext < n + 1) {
			p->text_room = p->text_room * 2 + 65536;
			p->text = mr_realloc(p->text, p->text_room);
		}
		memcpy(p->text + p->ntext, name, n + 1);
		grow(&p->names, (uint32_t)p->ntext);
		p->ntext += n + 1;
		p->table.v[at] = (uint32_t)p->names.n;
	}
	*v = NAME + (p->table.v[at] - 1) * KINDS;
	return 0;
}

/* ---- the stack ---- */

static int
push(struct mr_pickle *p, uint32_t v)
{
	if (p->stack.n == DEPTH_MAX)
		return bad(p, "more than %d values on the stack", DEPTH_MAX);
	grow(&p->stack, v);
	return 0;
}

/* Values above the topmost mark. */
static size_t
above(const struct mr_pickle *p)
{
	return p->stack.n -
	    (p->marks.n > 0 ? p->marks.v[p->marks.n - 1] : 0);
}

static int
need(struct mr_pickle *p, size_t n, const char *op)
{
	if (above(p) < n)
		return bad(p, "%s finds %zu values, wanted %zu", op, above(p),
		    n);
	return 0;
}

static enum kind
kind(uint32_t v)
{
	return (enum kind)(v % KINDS);
}

static uint32_t
top(const struct mr_pickle *p, size_t below)
{
	return p->stack.v[p->stack.n - 1 - below];
}

/* Drops N values and pushes one. */
static int
become(struct mr_pickle *p, size_t n, uint32_t v)
{
	p->stack.n -= n;
	return push(p, v);
}

/* Takes the topmost mark away; *N values were above it. */
static int
unmark(struct mr_pickle *p, const char *op, size_t *n)
{
	if (p->marks.n == 0)
		return bad(p, "%s finds no mark", op);
	*n = above(p);
	p->marks.n--;
	return 0;
}

static int
op_mark(struct mr_pickle *p)
{
	if (p->marks.n == MARKS_MAX)
		return bad(p, "more than %d marks, one in another",
		    MARKS_MAX);
	grow(&p->marks, (uint32_t)p->stack.n);
	return 0;
}

static int
op_tuple(struct mr_pickle *p, size_t n)
{
	return need(p, n, "TUPLE") == -1 ? -1 : become(p, n, TUPLE);
}

static int
op_marked_tuple(struct mr_pickle *p)
{
	size_t n = 0;

	return unmark(p, "TUPLE", &n) == -1 ? -1 : become(p, n, TUPLE);
}

/* N values, or those above a mark if it is 0, go into what lies below them:
 * a container of this kind, or an object that acts as one. */
static int
op_store(struct mr_pickle *p, enum kind into, size_t n, const char *op)
{
	enum kind k;
	int pairs = into == DICT;

	if (n == 0 && unmark(p, op, &n) == -1)
		return -1;
	if (need(p, n + 1, op) == -1)
		return -1;
	k = kind(top(p, n));
	if (k != into && k != OBJECT)
		return bad(p, "%s finds %s, wanted %s", op, kind_name[k],
		    kind_name[into]);
	if (pairs && n % 2 != 0)
		return bad(p, "%s finds a key without a value", op);
	p->stack.n -= n;
	return 0;
}

/* ---- the memo ---- */

static int
op_memoize(struct mr_pickle *p)
{
	if (need(p, 1, "MEMOIZE") == -1)
		return -1;
	if (p->memo.n == MEMO_MAX)
		return bad(p, "more than %d memo slots", MEMO_MAX);
	grow(&p->memo, top(p, 0));
	return 0;
}

static int
op_get(struct mr_pickle *p, uint64_t i)
{
	if (i >= p->memo.n)
		return bad(p, "memo slot %" PRIu64 " was never written", i);
	return push(p, p->memo.v[i]);
}

/* ---- what reaches code ---- */

/* Of builtins, what makes plain data; nothing else of it can be listed. */
static int
plain(const char *name)
{
	static const char *const types[] = {
		"bytearray", "complex", "frozenset", "range", "set", "slice"
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(name, types[i]) == 0)
			return 1;
	return 0;
}

static int
check_import(struct mr_pickle *p, const char *module, const char *name)
{
	if (!mr_imports_module(module))
		return bad(p, "\"%s\" is not the name of a module", module);
	if (strchr(name, '.') != NULL)
		return bad(p, "%s %s: a dot in a name reaches whatever the "
		    "module has imported", module, name);
	if (!mr_imports_name(name))
		return bad(p, "\"%s\" of %s is not a name", name, module);
	if (strcmp(module, "builtins") == 0 && !plain(name))
		return bad(p, "builtins %s could run code: no list can allow "
		    "it", name);
	return 0;
}

/* Counts an import; which one it is, in *I. */
static int
import(struct mr_pickle *p, const char *module, const char *name, size_t *i)
{
	struct mr_import *m;

	for (*i = 0; *i < p->nimport; ++*i) {
		m = &p->import[*i];
		if (strcmp(m->name, name) == 0 &&
		    strcmp(m->module, module) == 0) {
			m->count++;
			return 0;
		}
	}
	if (check_import(p, module, name) == -1)
		return -1;
	if (p->nimport == IMPORTS_MAX)
		return bad(p, "more than %d different imports", IMPORTS_MAX);
	p->import = mr_realloc(p->import, (p->nimport + 1) * sizeof(*m));
	m = &p->import[p->nimport++];
	m->module = mr_strdup(module);
	m->name = mr_strdup(name);
	m->count = 1;
	m->listed = p->list != NULL && mr_imports_has(p->list, module, name);
	return 0;
}

static int
op_stack_global(struct mr_pickle *p)
{
	uint32_t module, name;
	size_t i = 0;

	if (need(p, 2, "STACK_GLOBAL") == -1)
		return -1;
	module = top(p, 1);
	name = top(p, 0);
	if (kind(module) != NAME || kind(name) != NAME)
		return bad(p, "STACK_GLOBAL takes %s and %s, wanted two strings"
		    " that are names", kind_name[kind(module)],
		    kind_name[kind(name)]);
	if (import(p, name_of(p, module / KINDS), name_of(p, name / KINDS),
	    &i) == -1)
		return -1;
	return become(p, 2, GLOBAL + (uint32_t)i * KINDS);
}

/* REDUCE and NEWOBJ call what lies below a tuple. */
static int
op_call(struct mr_pickle *p, const char *op)
{
	enum kind what;

	if (need(p, 2, op) == -1)
		return -1;
	what = kind(top(p, 1));
	if (what != GLOBAL)
		return bad(p, "%s calls %s, wanted a global", op,
		    kind_name[what]);
	if (kind(top(p, 0)) != TUPLE)
		return bad(p, "%s gives it %s, wanted a tuple", op,
		    kind_name[kind(top(p, 0))]);
	return become(p, 2, OBJECT);
}

/* BUILD on a class would change all of its objects. */
static int
op_build(struct mr_pickle *p)
{
	if (need(p, 2, "BUILD") == -1)
		return -1;
	if (kind(top(p, 1)) != OBJECT)
		return bad(p, "BUILD changes %s, wanted an object",
		    kind_name[kind(top(p, 1))]);
	p->stack.n--;
	return 0;
}

static int
op_next_buffer(struct mr_pickle *p)
{
	if (!p->framed)
		return bad(p, "NEXT_BUFFER, but no buffers follow: the pickle "
		    "is not out of band");
	p->buffers++;
	return push(p, VALUE);
}

/* ---- the machine ---- */

static int
op_proto(struct mr_pickle *p, uint64_t v)
{
	if (p->nops > 0)
		return bad(p, "a second PROTO");
	if (v < 4 || v > 5)
		return bad(p, "pickle protocol %" PRIu64 ", wanted 4 or 5", v);
	return 0;
}

static int
op_frame(struct mr_pickle *p, uint64_t n)
{
	if (p->frame != 0)
		return bad(p, "a frame begins inside another");
	if (n > p->end - p->pos)
		return bad(p, "truncated: a frame needs %" PRIu64 " bytes, %"
		    PRIu64 " are left", n, p->end - p->pos);
	p->frame = p->pos + n;
	return 0;
}

static int
op_stop(struct mr_pickle *p)
{
	if (p->stack.n != 1 || p->marks.n != 0)
		return bad(p, "STOP finds %zu values and %zu marks, wanted one "
		    "value", p->stack.n, p->marks.n);
	if (p->frame != 0 && p->frame != p->pos)
		return bad(p, "%" PRIu64 " bytes of the frame follow STOP",
		    p->frame - p->pos);
	p->at = p->pos;
	if (p->end != UINT64_MAX && p->pos != p->end)
		return bad(p, "%" PRIu64 " bytes follow STOP",
		    p->end - p->pos);
	p->state = BUFFERS;
	return 0;
}

static int
execute(struct mr_pickle *p, unsigned char op, uint64_t v)
{
	switch (op) {
	case 0x80: return op_proto(p, v);
	case 0x95: return op_frame(p, v);
	case '.': return op_stop(p);
	case '(': return op_mark(p);
	case '}': return push(p, DICT);
	case ']': return push(p, LIST);
	case 0x94: return op_memoize(p);
	case 'h': case 'j': return op_get(p, v);
	case 0x93: return op_stack_global(p);
	case 'R': case 0x81: return op_call(p, ops[op].name);
	case 'b': return op_build(p);
	case 0x97: return op_next_buffer(p);
	case ')': return op_tuple(p, 0);
	case 0x85: return op_tuple(p, 1);
	case 0x86: return op_tuple(p, 2);
	case 0x87: return op_tuple(p, 3);
	case 't': return op_marked_tuple(p);
	case 's': return op_store(p, DICT, 2, "SETITEM");
	case 'u': return op_store(p, DICT, 0, "SETITEMS");
	case 'a': return op_store(p, LIST, 1, "APPEND");
	case 'e': return op_store(p, LIST, 0, "APPENDS");
	default: return push(p, VALUE);	/* plain data */
	}
}

/* Is the opcode one that artifacts have, in its place? */
static int
check_opcode(struct mr_pickle *p, unsigned char op)
{
	if (p->nops == 0 && op != 0x80)
		return bad(p, "begins with 0x%02x, wanted a pickle of protocol "
		    "4 or 5", op);
	if (p->nops == OPS_MAX)
		return bad(p, "more than %d opcodes", OPS_MAX);
	if (ops[op].name == NULL)
		return bad(p, "0x%02x is no opcode", op);
	if (ops[op].refusal != TAKEN)
		return bad(p, "opcode %s %s", ops[op].name,
		    refusal_text[ops[op].refusal]);
	return 0;
}

/* Executes the next opcode: 1, or 0 if more is to be fed, or -1. */
static int
opcode(struct mr_pickle *p)
{
	const unsigned char *s;
	uint64_t v, n = 0;
	uint32_t text;
	size_t head;
	unsigned char op;

	p->at = p->pos;
	if (p->pos == p->frame)
		p->frame = 0;
	if (p->pos == p->end)
		return bad(p, "truncated: no STOP");
	s = peek(p, 1);
	if (s == NULL)
		return 0;
	op = s[0];
	/* an argument that is still to come is asked for again */
	if (check_opcode(p, op) == -1)
		return -1;
	head = 1 + (size_t)ops[op].width;
	if (fits(p, head) == -1)
		return -1;
	s = peek(p, head);
	if (s == NULL)
		return 0;
	v = little(s + 1, ops[op].width);
	if (ops[op].counted) {
		n = v;
		if (n > INT64_MAX || fits(p, head + n) == -1)
			return p->state == FAILED ? -1 :
			    bad(p, "%s of %" PRIu64 " bytes", ops[op].name, n);
	}
	if ((op == 0x8c || op == 'X') && n <= NAME_MAX_BYTES) {
		s = peek(p, head + (size_t)n);
		if (s == NULL)
			return 0;
		if (string(p, s + head, (size_t)n, &text) == -1 ||
		    push(p, text) == -1)
			return -1;
		take(p, head + (size_t)n, 0);
	} else {
		take(p, head, n);
		if (op == 'X' ? push(p, STRING) == -1 :
		    execute(p, op, v) == -1)
			return -1;
	}
	p->nops++;
	return 1;
}

/* Is it framed? Decided as loaders do: int64 length, then a pickle of protocol
 * 5. What is neither, is read as if framed, so that it is said to be cut. */
static int
form(struct mr_pickle *p)
{
	const unsigned char *s;
	uint64_t n;

	s = peek(p, 10);
	if (s == NULL)
		return 0;
	p->state = OPCODES;
	n = little(s, 8);
	if (s[8] != 0x80 || s[9] != 5 || n == 0 || n > INT64_MAX ||
	    (s[0] == 0x80 && n > p->size - 8))
		return 1;
	p->framed = 1;
	if (n > p->size - 8)
		return bad(p, "truncated: opcodes need %" PRIu64 " bytes, %"
		    PRIu64 " are left", n, p->size - 8);
	take(p, 8, 0);
	p->end = 8 + n;
	return 1;
}

/* A buffer of an out-of-band pickle; in band, anything is too much. */
static int
buffer(struct mr_pickle *p)
{
	const unsigned char *s;
	uint64_t n;

	p->at = p->pos;
	if (!p->framed)
		return bad(p, "bytes follow STOP");
	if (p->buffers == 0)
		return bad(p, "bytes follow the last buffer");
	s = peek(p, 8);
	if (s == NULL)
		return 0;
	n = little(s, 8);
	if (n > INT64_MAX)
		return bad(p, "a buffer of %" PRId64 " bytes", (int64_t)n);
	if (p->size - p->pos < 8 || n > p->size - p->pos - 8)
		return bad(p, "truncated: a buffer needs %" PRIu64 " bytes, %"
		    PRIu64 " are left", n, p->size - p->pos - 8);
	p->buffers--;
	take(p, 8, n);
	return 1;
}

/* ---- the whole ---- */

struct mr_pickle *
mr_pickle_new(uint64_t size, const struct mr_imports *list)
{
	struct mr_pickle *p;

	p = mr_malloc(sizeof(*p));
	memset(p, 0, sizeof(*p));
	p->size = size;
	p->end = size;
	p->list = list;
	return p;
}

void
mr_pickle_free(struct mr_pickle *p)
{
	size_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->nimport; i++) {
		free(p->import[i].module);
		free(p->import[i].name);
	}
	free(p->import);
	free(p->stack.v);
	free(p->marks.v);
	free(p->memo.v);
	free(p->names.v);
	free(p->table.v);
	free(p->text);
	free(p);
}

/* Passes over what nobody looks at, as far as it has come. */
static void
pass(struct mr_pickle *p)
{
	size_t n;

	n = p->skip < p->nhead ? (size_t)p->skip : p->nhead;
	if (n > 0)
		drop(p, n);
	p->skip -= n;
	n = p->skip < p->left ? (size_t)p->skip : p->left;
	p->in += n;
	p->left -= n;
	p->skip -= n;
}

int
mr_pickle_feed(struct mr_pickle *p, const void *buf, size_t n,
    struct mr_err *e)
{
	int more = 1;

	p->in = buf;
	p->left = n;
	while (more == 1 && p->state != FAILED) {
		pass(p);
		if (p->left == 0 && p->nhead == 0)
			break;
		more = p->state == FORM ? form(p) :
		    p->state == OPCODES ? opcode(p) : buffer(p);
	}
	return p->state == FAILED ? mr_fail(e, "%s", p->why) : 0;
}

uint64_t
mr_pickle_skip(const struct mr_pickle *p)
{
	return p->state == FAILED ? 0 : p->skip;
}

void
mr_pickle_skipped(struct mr_pickle *p, uint64_t n)
{
	p->skip -= n;
}

static int
by_name(const void *a, const void *b)
{
	const struct mr_import *x = a, *y = b;
	int c;

	c = strcmp(x->module, y->module);
	return c != 0 ? c : strcmp(x->name, y->name);
}

int
mr_pickle_end(struct mr_pickle *p, struct mr_err *e)
{
	uint64_t at;

	if (p->state == FORM && p->nhead > 0) {	/* too short to be framed */
		p->state = OPCODES;
		mr_pickle_feed(p, "", 0, e);
	}
	at = p->pos - p->skip + p->nhead;
	if (p->state != FAILED && (p->state != BUFFERS || p->skip > 0 ||
	    p->nhead > 0 || p->buffers > 0)) {
		p->at = at;
		if (at == 0)
			bad(p, "empty");
		else if (p->state != BUFFERS)
			bad(p, "truncated: no STOP");
		else
			bad(p, "truncated: in a buffer, or %" PRIu64
			    " buffers are missing", p->buffers);
	}
	if (p->state == FAILED)
		return mr_fail(e, "%s", p->why);
	if (p->nimport > 0)
		qsort(p->import, p->nimport, sizeof(*p->import), by_name);
	return 0;
}

const struct mr_import *
mr_pickle_imports(const struct mr_pickle *p, size_t *n)
{
	*n = p->nimport;
	return p->import;
}
