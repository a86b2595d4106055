/* One model on one device: what is sent, followed and brought home. The lines
 * are those of tools/device/agent.sh; remote-compile(1) lists them. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

enum {
	FILES = 128,			/* most that a compile may leave */
	MARGIN = 64 << 20		/* bytes that stay free on a disk */
};

struct file {
	char		name[160], hex[MR_HEX];
	uint64_t	size;
};
struct result {
	int		status;		/* of the compiler */
	struct file	file[FILES];
	size_t		n;
};

struct mr_json sources;

/* ---- the sources go up ---- */

static struct mr_json
source_file(const struct work *w, size_t i)
{
	return mr_json_at(mr_json_get(w->source, "files"), i);
}

static uint64_t
source_bytes(const struct work *w)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < mr_json_len(mr_json_get(w->source, "files")); i++)
		sum += (uint64_t)mr_json_int(source_file(w, i), "size", 0);
	return sum;
}

/* sends what the device lacks of PATH */
static void
send_bytes(const char *path, uint64_t skip, uint64_t size)
{
	static char buf[MR_BUF];
	struct mr_progress *p;
	char *what;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || lseek(fd, (off_t)skip, SEEK_SET) == -1)
		give_up(MODEL, MR_UNFIT, "%s: %s", path, strerror(errno));
	what = mr_fmt("%s: upload", o.id);
	p = mr_progress_new(what, size, 0);
	mr_progress_have(p, (int64_t)skip);
	for (; skip < size; skip += (uint64_t)n) {
		n = mr_read(fd, buf, size - skip > sizeof(buf) ? sizeof(buf) :
		    (size_t)(size - skip));
		if (n <= 0)
			give_up(MODEL, MR_UNFIT, "%s: became shorter", path);
		link_write(buf, (size_t)n);
		mr_progress_add(p, (uint64_t)n);
	}
	mr_progress_end(p);
	free(what);
	close(fd);
}

static void
put(struct mr_json f)
{
	const char *component;
	char *path, *line;
	uint64_t size, skip;
	int tries;

	component = mr_json_str(f, "component", "");
	size = (uint64_t)mr_json_int(f, "size", 0);
	path = mr_fmt("onnx/%s/%s_%s.onnx", o.id, o.id, component);
	for (tries = 0; tries < 2; tries++) {
		link_say("put %s_%s.onnx %llu %s", o.id, component,
		    (unsigned long long)size, mr_json_str(f, "sha256", ""));
		line = link_line();
		if (strcmp(line, "have") == 0)
			break;
		if (strncmp(line, "from ", 5) != 0 ||
		    mr_number(line + 5, size, &skip) == -1)
			give_up(DEVICE, MR_UNFIT, "it answered \"%.60s\" to an "
			    "upload", line);
		send_bytes(path, skip, size);
		if (strcmp(link_line(), "ok") == 0)
			break;
	}
	if (tries == 2)
		give_up(LINK, MR_AGAIN, "%s: arrived spoiled twice", path);
	free(path);
}

/* ---- the log, and the result ---- */

/* copies N bytes of the log to standard error */
static void
show_log(uint64_t n)
{
	const char *p;
	size_t got;

	for (; n > 0; n -= got) {
		got = link_read(&p, (size_t)n);
		if (mr_write(STDERR_FILENO, p, got) == -1)
			give_up(MODEL, MR_UNFIT, "standard error: %s",
			    strerror(errno));
		sh->seen += got;
	}
}

/* is NAME one that a compile of this model may leave? */
static int
output_ok(const char *name)
{
	size_t n = strlen(o.id);

	return strncmp(name, o.id, n) == 0 && strcmp(name + n, "") != 0 &&
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789._-") == strlen(name);
}

/* takes a line `file NAME SIZE SHA256` */
static void
add_file(struct result *r, const char *line)
{
	struct file *f;
	char size[24];

	if (r->n == FILES)
		give_up(MODEL, MR_NO, "the compile left more than %d files",
		    FILES);
	f = &r->file[r->n];
	if (sscanf(line, "file %159s %23s %64s", f->name, size, f->hex) != 3 ||
	    mr_number(size, UINT64_MAX >> 1, &f->size) == -1 ||
	    !mr_oid_ok(f->hex))
		give_up(DEVICE, MR_UNFIT, "it answered \"%.80s\"", line);
	if (output_ok(f->name))
		r->n++;
}

/* The compile is over for good: its folder goes. */
static void
clean(void)
{
	char *path;

	if (!o.keep) {
		link_say("clean");
		link_expect("cleaned");
	}
	path = mr_fmt(".state/remote/%s", o.id);
	unlink(path);
	free(path);
	sh->started = 0;
}

/* Follows the job to its end; 0 if it was lost. */
static int
follow(struct result *r)
{
	char *line;
	uint64_t n;

	phase("compile", o.silence);
	link_say("follow %llu %u", (unsigned long long)sh->seen, o.limit);
	for (;;) {
		line = link_line();
		if (strncmp(line, "log ", 4) == 0 &&
		    mr_number(line + 4, MR_BUF, &n) == 0) {
			show_log(n);
			continue;
		}
		break;
	}
	if (strncmp(line, "lost ", 5) == 0) {
		fprintf(stderr, "%s: %s\n", o.id, line + 5);
		return 0;
	}
	if (strncmp(line, "late ", 5) == 0) {
		clean();
		give_up(MODEL, MR_UNFIT, "the compile was stopped: it ran for "
		    "more than %u s (COMPILE_SECONDS)", o.limit);
	}
	if (strcmp(line, "cancelled") == 0) {
		clean();
		give_up(MODEL, MR_AGAIN, "the compile was cancelled");
	}
	if (strcmp(line, "changed") == 0) {
		clean();
		give_up(MODEL, MR_AGAIN, "the compiler changed during the "
		    "compile: run make again");
	}
	if (strncmp(line, "exit ", 5) != 0 ||
	    mr_number(line + 5, 255, &n) == -1)
		give_up(DEVICE, MR_UNFIT, "it answered \"%.80s\"", line);
	r->status = (int)n;
	for (r->n = 0; strcmp(line = link_line(), "end") != 0; )
		add_file(r, line);
	return 1;
}

/* ---- the product comes home ---- */

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

/* appends F to OUT and WHOLE; 0 if it is not what the device hashed */
static int
get(const struct file *f, struct mr_out *out, struct mr_sha256 *whole,
    struct mr_progress *p)
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
		mr_sha256_add(whole, bytes, n);
		if (mr_write(out->fd, bytes, n) == -1) {
			n = (size_t)errno;
			mr_out_abort(out);
			give_up(MODEL, MR_UNFIT, "compiled/%s.pkl: %s", o.id,
			    strerror((int)n));
		}
		mr_progress_add(p, n);
	}
	mr_sha256_end(h, hex);
	return strcmp(hex, f->hex) == 0;
}

/* Does the digest that came with the parts agree? "HEX  NAME" */
static int
agrees(const struct file *f, const char *hex)
{
	char *line;
	const char *bytes;
	char text[MR_HEX] = "";
	uint64_t size, left;
	size_t n, have = 0, k;

	link_say("get %s", f->name);
	line = link_line();
	if (strncmp(line, "data ", 5) != 0 ||
	    mr_number(line + 5, UINT64_MAX >> 1, &size) == -1)
		return 0;
	for (left = size; left > 0; left -= n) {
		n = link_read(&bytes, left > MR_BUF ? MR_BUF : (size_t)left);
		k = n > MR_HEX - 1 - have ? MR_HEX - 1 - have : n;
		memcpy(text + have, bytes, k);
		have += k;
	}
	return strcmp(text, hex) == 0;
}

/* room for SIZE bytes here? */
static void
check_room(uint64_t size)
{
	uint64_t room;

	if (mr_space(".", &room) == 0 && room < size + MARGIN)
		give_up(MODEL, MR_UNFIT, "no space here: %llu bytes are free, "
		    "wanted %llu: the result stays on the device",
		    (unsigned long long)room,
		    (unsigned long long)(size + MARGIN));
}

/* Brings the product home and lands it; 0 if the device's copy is spoiled. */
static int
collect(const struct work *w, const struct result *r)
{
	const struct file *part[FILES], *sum;
	struct mr_progress *p;
	struct mr_sha256 *whole;
	struct mr_out out;
	struct mr_err e;
	uint64_t size = 0;
	size_t i, n;
	char hex[MR_HEX], *what;
	int good = 1;

	n = parts_of(r, part);
	for (i = 0; i < n; i++)
		size += part[i]->size;
	if (size == 0) {
		clean();
		give_up(MODEL, MR_NO, "the compiler ended well, yet wrote no "
		    "%s_driving_tinygrad.pkl", o.id);
	}
	phase("download", o.silence);
	check_room(size);
	if (mr_mkdirs("compiled", &e) == -1 ||
	    mr_out_open(&out, w->product, &e) == -1)
		give_up(MODEL, MR_UNFIT, "%s", e.text);
	what = mr_fmt("%s: download", o.id);
	p = mr_progress_new(what, size, 0);
	whole = mr_sha256_new();
	for (i = 0; i < n && good; i++)
		good = get(part[i], &out, whole, p);
	mr_sha256_end(whole, hex);
	mr_progress_end(p);
	free(what);
	sum = n > 0 && part[0] == find(r, "") ? NULL : find(r, ".sha256");
	if (good && sum != NULL)
		good = agrees(sum, hex);
	if (!good) {
		mr_out_abort(&out);
		return 0;
	}
	if (land_begin(w) != MR_OK) {
		mr_out_abort(&out);
		give_up(MODEL, MR_UNFIT, "%s: cannot be removed", w->record);
	}
	if (mr_out_commit(&out, &e) == -1)
		give_up(MODEL, MR_UNFIT, "%s", e.text);
	if (land_end(w, hex, size) != MR_OK)
		give_up(MODEL, MR_UNFIT, "%s: cannot be written", w->record);
	return 1;
}

/* ---- the whole ---- */

/* all devices of a run have one compiler: that which the run began with */
static void
check_run(const struct work *w)
{
	const char *run;
	struct mr_json first, lines;
	struct mr_key k;
	struct mr_err e;
	char *path, *why;

	run = getenv("MR_RUN");
	if (run == NULL)
		return;
	path = mr_fmt("%s/identity.json", run);
	if (mr_json_load(&first, path, &e) == 0) {
		lines = mr_json_object();
		if (mr_key_device(&k, first) == 0) {
			mr_key_record(&k, &lines, "");
			why = mr_key_diff(&w->device, lines, "");
			if (why != NULL)
				give_up(DEVICE, MR_AGAIN, "its compiler is "
				    "not that of this run: %s", why);
		}
		mr_key_free(&k);
		mr_json_free(lines);
		mr_json_free(first);
	}
	free(path);
}

/* Asks the device who it is; *LINE is the answer's digest. */
static void
ask_identity(struct device *d, struct work *w, char hex[MR_HEX])
{
	char *line, *text;

	phase("compiler identity", o.silence);
	link_say("identity");
	line = link_expect("identity");
	text = mr_fmt("%s\n", line);
	mr_sha256_buf(text, strlen(text), hex);
	if (work_identity(w, text, d->name) != MR_OK)
		give_up(DEVICE, MR_UNFIT, "its compiler does not say who it "
		    "is");
	free(text);
}

/* sends the sources and starts the compile */
static void
start(struct device *d, const struct work *w, const char *want)
{
	struct mr_err e;
	struct mr_out out;
	char *path;
	size_t i;

	phase("upload", o.silence);
	for (i = 0; i < mr_json_len(mr_json_get(w->source, "files")); i++)
		put(source_file(w, i));
	/* so that the next run asks this device first */
	path = mr_fmt(".state/remote/%s", o.id);
	if (mr_mkdirs(".state/remote", &e) == -1 ||
	    mr_out_open(&out, path, &e) == -1)
		give_up(MODEL, MR_UNFIT, "%s", e.text);
	if (mr_write(out.fd, d->name, strlen(d->name)) == -1 ||
	    mr_out_commit(&out, &e) == -1)
		give_up(MODEL, MR_UNFIT, "%s: cannot be written", path);
	free(path);
	phase("start of the compile", o.silence);
	sh->started = 1;
	sh->seen = 0;
	link_say("start %u %s %s %s %s %d", o.wait, want, o.id, o.format,
	    o.version[0] == '\0' ? "-" : o.version, o.gpu);
	link_line();	/* started, or running or done by another hand */
}

/* a job that came to no result counts as one of the retries */
static void
count_lost(void)
{
	if (sh->lost++ >= o.retries)
		give_up(MODEL, MR_AGAIN, "the compile was lost %u times: it "
		    "left no result on the device", sh->lost);
}

/* Takes up or starts the job of W, until there is a result that is whole. */
static void
finish(struct device *d, const struct work *w, const char *want)
{
	static struct result r;
	char *line, *tab;

	for (;;) {
		link_say("job %s %s", w->key, o.id);
		line = link_expect("state");
		tab = strchr(line, '\t');
		if (tab != NULL)
			*tab = '\0';
		if (strcmp(line, "running") == 0 && !sh->started)
			fprintf(stderr, "%s: is being compiled on %s already, "
			    "for %s: waiting for it\n", o.id, d->name,
			    tab == NULL ? "?" : tab + 1);
		if (strcmp(line, "lost") == 0) {
			fprintf(stderr, "%s: its compile on %s ended without "
			    "a result: started again\n", o.id, d->name);
			count_lost();
		} else if (strcmp(line, "done") == 0 && o.force &&
		    !sh->started) {
			link_say("drop");
			link_expect("dropped");
			line = strcpy(line, "none");
		}
		if (strcmp(line, "running") != 0 && strcmp(line, "done") != 0)
			start(d, w, want);
		sh->started = 1;
		if (!follow(&r)) {
			count_lost();
			continue;
		}
		if (r.status != 0) {
			clean();
			give_up(MODEL, r.status == MR_NO || r.status ==
			    MR_AGAIN ? r.status : MR_UNFIT, r.status > 128 ?
			    "the compiler was killed: status %d (out of "
			    "memory?)" : "the compiler ended with status %d",
			    r.status);
		}
		if (collect(w, &r))
			break;
		fprintf(stderr, "%s: the result on %s is not what was written: "
		    "lost in a power cut? compiled again\n", o.id, d->name);
		count_lost();
		link_say("drop");
		link_expect("dropped");
	}
	clean();
}

void
job_compile(struct device *d)
{
	struct work w;
	char want[MR_HEX];

	w.source = sources;
	link_open(d);
	phase("preflight", o.silence);
	/* the sources, an artifact of about their size, and its parts */
	link_say("fit %llu %d", (unsigned long long)(source_bytes(&w) * 4 +
	    MARGIN), o.gpu);
	link_expect("fit");
	ask_identity(d, &w, want);
	check_run(&w);
	work_key(&w);
	if (work_current(&w))
		puts("current");
	else
		finish(d, &w, want);
	link_close();
}

void
job_identity(struct device *d)
{
	struct work w;
	char want[MR_HEX], *text;

	link_open(d);
	ask_identity(d, &w, want);
	text = mr_json_dump(w.identity, 0);
	puts(text);
	free(text);
	link_close();
}

/* prints what the agent tells, with the device's name in front */
static void
tell(struct device *d)
{
	char *line;

	while (strcmp(line = link_line(), "end") != 0)
		if (strncmp(line, "tell ", 5) == 0)
			printf("%s: %s\n", d->name, line + 5);
	link_close();
}

void
job_status(struct device *d)
{
	link_open(d);
	phase("status", o.silence);
	link_say("status");
	tell(d);
}

void
job_cancel(struct device *d)
{
	link_open(d);
	phase("cancel", o.silence);
	link_say("cancel %s", o.id);
	tell(d);
}
