/* One model on one device: taken up or started, followed, ended. The lines are
 * those of tools/device/agent.sh; remote-compile(1) lists them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

struct mr_json sources;

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

/* the compile is over for good, and HOW its folder on the device goes */
static void
end_job(const char *how)
{
	char *path;

	if (how != NULL) {
		link_say("%s", how);
		link_expect("cleaned");
	}
	path = mr_fmt(".state/remote/%s", o.job);
	unlink(path);
	free(path);
	sh->started = 0;
}

void
job_failed(void)
{
	end_job(o.keep ? "forget" : "clean failed");
}

/* what a job left that has no result */
static void
skip_rest(void)
{
	while (strcmp(link_line(), "end") != 0)
		;
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
	if (strncmp(line, "lost ", 5) == 0)
		return 0;	/* `job` notes why */
	if (strncmp(line, "late ", 5) == 0) {
		job_failed();
		give_up(MODEL, MR_UNFIT, "the compile was stopped: it ran for "
		    "more than %u s (COMPILE_SECONDS)", o.limit);
	}
	if (strcmp(line, "cancelled") == 0) {
		skip_rest();
		job_failed();
		give_up(MODEL, MR_AGAIN, "the compile was cancelled");
	}
	if (strcmp(line, "changed") == 0) {
		skip_rest();
		job_failed();
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

/* Asks the device who it is; the agent holds the compile to the answer. */
static void
ask_identity(struct device *d, struct work *w)
{
	phase("compiler identity", o.silence);
	link_say("identity");
	if (work_identity(w, link_expect("identity"), d->name) != MR_OK)
		give_up(DEVICE, MR_UNFIT, "its compiler does not say who it "
		    "is");
}

/* sends the artifact that is to be tried */
static void
upload_artifact(const struct work *w)
{
	char *name, hex[MR_HEX];

	phase("upload", o.silence);
	name = trial_artifact();
	if (!upload_file(name, w->product,
	    (uint64_t)mr_json_int(w->source, "size", 0),
	    mr_json_str(w->source, "sha256", ""), hex)) {
		trial_spoiled(w, hex);
		give_up(MODEL, MR_NO, "%s: not what its record says",
		    w->product);
	}
	free(name);
}

/* Takes the result of a validation home, whatever it says; 0 if there is
 * none, or it is not whole. */
static int
collect_result(const struct work *w, const struct result *r)
{
	struct mr_err e;
	char *name, *text;
	size_t i;
	int status;

	name = trial_result();
	for (i = 0; i < r->n && strcmp(r->file[i].name, name) != 0; i++)
		;
	free(name);
	if (i == r->n || r->file[i].size > RESULT_MAX) {
		job_failed();
		give_up(MODEL, MR_UNFIT, "the validation ended with status "
		    "%d, yet left no result of at most %d bytes", r->status,
		    RESULT_MAX);
	}
	text = collect_text(&r->file[i]);
	if (text == NULL)
		return 0;
	status = trial_land(w, text, &e);
	free(text);
	if (status == MR_OK)
		return 1;
	job_failed();
	give_up(MODEL, status, "%s", e.text);
}

/* sends what it needs and starts the job */
static void
start(struct device *d, const struct work *w)
{
	struct mr_err e;
	struct mr_out out;
	char *path;

	if (o.validate)
		upload_artifact(w);
	else
		upload(w);
	/* so that the next run asks this device first */
	path = mr_fmt(".state/remote/%s", o.job);
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
	link_say("start %u %s %s %s %d", o.wait, o.job, o.format[0] == '\0' ?
	    "-" : o.format,
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

/* forgets a result that is not wanted or not whole */
static void
drop(void)
{
	link_say("drop");
	link_expect("dropped");
}

/* Takes up or starts the job of W, until there is a result that is whole. */
static void
finish(struct device *d, const struct work *w)
{
	static struct result r;
	char *line, *tab;
	int counted = 0;

	for (;;) {
		link_say("job %s %s", w->key, o.job);
		line = link_expect("state");
		tab = strchr(line, '\t');
		if (tab != NULL)
			*tab = '\0';
		if (strcmp(line, "running") == 0 && !sh->started)
			fprintf(stderr, "%s: is being compiled on %s already, "
			    "for %s: waiting for it\n", o.id, d->name,
			    tab == NULL ? "?" : mr_one_line(tab + 1));
		if (strcmp(line, "lost") == 0) {
			fprintf(stderr, "%s: its compile on %s ended without "
			    "a result: started again\n", o.id, d->name);
			if (!counted)
				count_lost();
		}
		counted = 0;
		if (strcmp(line, "done") == 0 && o.force && !sh->started) {
			drop();
			start(d, w);
		} else if (strcmp(line, "running") != 0 &&
		    strcmp(line, "done") != 0) {
			start(d, w);
		}
		sh->started = 1;
		if (!follow(&r)) {
			count_lost();
			counted = 1;
			continue;
		}
		if (o.validate && r.status <= MR_NO && collect_result(w, &r))
			break;
		if (r.status != 0) {
			job_failed();
			give_up(MODEL, r.status == MR_NO || r.status ==
			    MR_AGAIN ? r.status : MR_UNFIT, r.status > 128 ?
			    "the compiler was killed: status %d (out of "
			    "memory?)" : "the compiler ended with status %d",
			    r.status);
		}
		if (!o.validate && collect(w, &r))
			break;
		fprintf(stderr, "%s: the result on %s is not what was written: "
		    "lost in a power cut? compiled again\n", o.id, d->name);
		count_lost();
		drop();
	}
	end_job(o.keep ? NULL : "clean");
}

void
job_compile(struct device *d)
{
	struct work w;
	uint64_t need;

	w.source = sources;
	link_open(d);
	phase("preflight", o.silence);
	/* the sources, an artifact of about their size, and its parts */
	need = source_bytes(&w) * 4 + MARGIN;
	if (o.validate)
		need = (uint64_t)mr_json_int(w.source, "size", 0) + MARGIN;
	link_say("fit %llu %d %d", (unsigned long long)need, o.gpu,
	    o.validate);
	link_expect("fit");
	ask_identity(d, &w);
	check_run(&w);
	if (o.validate)
		trial_key(&w);
	else
		work_key(&w);
	if (o.validate ? trial_current(&w) : work_current(&w))
		puts("current");
	else
		finish(d, &w);
	link_close();
}

void
job_identity(struct device *d)
{
	struct work w;
	char *text;

	link_open(d);
	ask_identity(d, &w);
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
			printf("%s: %s\n", d->name, mr_one_line(line + 5));
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
