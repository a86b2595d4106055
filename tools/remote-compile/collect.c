/* The product comes home: one pickle, or the parts that the device made. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

static const struct file *
find(const struct result *r, const char *suffix)
{
	char *name;
	size_t i;

	name = mr_fmt("%s_driving_tinygrad.pkl%s", o.id, suffix);
	for (i = 0; i < r->n && strcmp(r->file[i].name, name) != 0; i++)
		;
	free(name);
	return i < r->n ? &r->file[i] : NULL;
}

/* what there is of the product: the whole pickle, or part after part */
static size_t
parts_of(const struct result *r, const struct file *part[FILES])
{
	char suffix[16];
	size_t n = 0;

	if ((part[0] = find(r, "")) != NULL)
		return 1;
	if (find(r, ".sha256") == NULL)
		return 0;
	do {
		snprintf(suffix, sizeof(suffix), ".p%02zu", n);
		part[n] = find(r, suffix);
	} while (part[n] != NULL && ++n < FILES);
	return n;
}

/* Hands F to TAKE, piece after piece; 0 if it is not what the device hashed. */
static int
get(const struct file *f, void (*take)(void *, const char *, size_t),
    void *arg)
{
	struct mr_sha256 *h;
	char hex[MR_HEX], *line;
	const char *bytes;
	uint64_t size, left;
	size_t n;

	link_say("get %s", f->name);
	line = link_line();
	if (strncmp(line, "data ", 5) != 0 ||
	    mr_number(line + 5, UINT64_MAX >> 1, &size) == -1)
		return 0;
	h = mr_sha256_new();
	for (left = size; left > 0; left -= n) {
		n = link_read(&bytes, left > MR_BUF ? MR_BUF : (size_t)left);
		mr_sha256_add(h, bytes, n);
		take(arg, bytes, n);
	}
	mr_sha256_end(h, hex);
	return strcmp(hex, f->hex) == 0;
}

/* the product on its way to the disk */
struct product {
	struct mr_out		 out;
	struct mr_sha256	*whole;		/* NULL: of one piece */
	struct mr_progress	*progress;
};

static void
take_product(void *arg, const char *bytes, size_t n)
{
	struct product *p = arg;
	int saved;

	if (p->whole != NULL)
		mr_sha256_add(p->whole, bytes, n);
	if (mr_write(p->out.fd, bytes, n) == -1) {
		saved = errno;
		mr_out_abort(&p->out);
		give_up(MODEL, MR_UNFIT, "compiled/%s.pkl: %s", o.id,
		    strerror(saved));
	}
	mr_progress_add(p->progress, n);
}

/* a .sha256 file, as far as one is read */
struct digest {
	char	text[512];
	size_t	n;
};

static void
take_digest(void *arg, const char *bytes, size_t n)
{
	struct digest *d = arg;

	if (n > sizeof(d->text) - d->n)
		n = sizeof(d->text) - d->n;
	memcpy(d->text + d->n, bytes, n);
	d->n += n;
}

/* Does the digest that came with the parts agree? 0 if F is not what the
 * device hashed. */
static int
agrees(const struct file *f, const char *hex)
{
	struct digest d = { "", 0 };
	char says[MR_HEX], *name;
	struct mr_err e;

	if (!get(f, take_digest, &d))
		return 0;
	name = mr_fmt("%s_driving_tinygrad.pkl", o.id);
	if (mr_sha256_line(d.text, d.n, name, says, &e) == 0) {
		free(name);
		if (strcmp(says, hex) == 0)
			return 1;
		mr_fail(&e, "says %s, yet the parts are %s", says, hex);
	}
	job_failed();
	give_up(MODEL, MR_NO, "%s: %s", f->name, e.text);
}

/* the text of a result */
struct text {
	char	*s;
	size_t	 n;
};

static void
take_text(void *arg, const char *bytes, size_t n)
{
	struct text *t = arg;

	if (n > RESULT_MAX - t->n)
		n = RESULT_MAX - t->n;
	memcpy(t->s + t->n, bytes, n);
	t->n += n;
}

char *
collect_text(const struct file *f)
{
	struct text t = { NULL, 0 };

	t.s = mr_malloc(RESULT_MAX + 1);
	if (!get(f, take_text, &t)) {
		free(t.s);
		return NULL;
	}
	t.s[t.n] = '\0';
	return t.s;
}

/* room for SIZE bytes here? */
static void
check_room(uint64_t size)
{
	uint64_t room;

	size += MARGIN;
	if (mr_space(".", &room) == 0 && room < size)
		give_up(MODEL, MR_UNFIT, "no space here: %llu bytes are free, "
		    "wanted %llu: the result stays on the device",
		    (unsigned long long)room,
		    (unsigned long long)size);
}

int
collect(const struct work *w, const struct result *r)
{
	const struct file *part[FILES], *sum;
	struct product p;
	struct mr_err e;
	uint64_t size = 0;
	size_t i, n;
	char hex[MR_HEX], *what;
	int good = 1;

	n = parts_of(r, part);
	for (i = 0; i < n; i++)
		size += part[i]->size;
	if (size == 0) {
		job_failed();
		give_up(MODEL, MR_NO, "the compiler ended well, yet wrote no "
		    "%s_driving_tinygrad.pkl", o.id);
	}
	phase("download", o.silence);
	check_room(size);
	if (mr_mkdirs("compiled", &e) == -1 ||
	    mr_out_open(&p.out, w->product, &e) == -1)
		give_up(MODEL, MR_UNFIT, "%s", e.text);
	what = mr_fmt("%s: download", o.id);
	p.progress = mr_progress_new(what, size, 0);
	/* one piece has been compared with what the device hashed */
	p.whole = n == 1 ? NULL : mr_sha256_new();
	snprintf(hex, sizeof(hex), "%s", n == 1 ? part[0]->hex : "");
	for (i = 0; i < n && good; i++)
		good = get(part[i], take_product, &p);
	if (p.whole != NULL)
		mr_sha256_end(p.whole, hex);
	mr_progress_end(p.progress);
	free(what);
	sum = n > 0 && part[0] == find(r, "") ? NULL : find(r, ".sha256");
	if (good && sum != NULL)
		good = agrees(sum, hex);
	if (!good) {
		mr_out_abort(&p.out);
		return 0;
	}
	if (land_begin(w) != MR_OK) {
		mr_out_abort(&p.out);
		give_up(MODEL, MR_UNFIT, "%s: cannot be removed", w->record);
	}
	if (mr_out_commit(&p.out, &e) == -1)
		give_up(MODEL, MR_UNFIT, "%s", e.text);
	if (land_end(w, hex, size) != MR_OK)
		give_up(MODEL, MR_UNFIT, "%s: cannot be written", w->record);
	return 1;
}
