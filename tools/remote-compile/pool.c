/* Several devices: which one takes a model, and what is tried after a failure.
 * A slot is a kernel lock of this user on this host: one model compiles while
 * the next one's sources go up. */
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "remote-compile.h"

enum { SLOTS = 2, PAUSE_MAX = 60 };

struct device pool[DEVICES];
size_t npool;
static volatile sig_atomic_t stopped;

static void
pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* the file that says that a device is left out for this run, or NULL */
static char *
out_file(const struct device *d)
{
	const char *run = getenv("MR_RUN");

	return run == NULL ? NULL : mr_fmt("%s/out.%s", run, d->name);
}

void
pool_leave_out(struct device *d, enum scope scope, int status, const char *why)
{
	char *path, *text;
	int fd = -1, first = 1;

	path = scope == PAIR ? NULL : out_file(d);
	if (path != NULL) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		first = fd != -1 || errno != EEXIST;
	}
	if (fd != -1) {
		text = mr_fmt("%d %s\n", status, why);
		if (mr_write(fd, text, strlen(text)) == -1)
			unlink(path);
		close(fd);
		free(text);
	}
	if (first)
		warnx("%s: %s: %s", d->name, scope == PAIR ?
		    "cannot take this model" : "left out", why);
	text = first ? NULL : mr_strdup(why);	/* WHY may be d->why */
	free(d->why);
	d->why = text;
	d->out = status;
	free(path);
}

/* Was D left out earlier in this run? That has been said once. */
static int
is_out(struct device *d)
{
	struct mr_err e;
	char *path, *text;
	size_t n;

	if (d->out != 0 || (path = out_file(d)) == NULL)
		return d->out != 0;
	text = mr_slurp(path, 4096, &n, &e);
	/* the line may be about to be written */
	if (text != NULL && text[n = strcspn(text, "\n")] == '\n') {
		text[n] = '\0';
		d->out = strncmp(text, "111 ", 4) == 0 ? MR_AGAIN : MR_UNFIT;
		d->why = mr_strdup(text + strcspn(text, " ") +
		    (strchr(text, ' ') != NULL));
	}
	free(text);
	free(path);
	return d->out != 0;
}

/* none is left: the log of this model is to tell why */
static void
say_why(void)
{
	size_t i;

	for (i = 0; i < npool; i++)
		if (pool[i].why != NULL)
			warnx("%s: was left out: %s", pool[i].name,
			    pool[i].why);
}

int
pool_status(void)
{
	int status = MR_OK;
	size_t i;

	for (i = 0; i < npool; i++)
		status = mr_worse(status, pool[i].out);
	return status;
}

/* ---- slots ---- */

/* a slot of D, as a locked descriptor, or -1 */
static int
slot(const struct device *d, int level)
{
	struct stat st;
	char *dir, *path;
	int fd;

	dir = mr_fmt("/tmp/model-rebuild-%lu", (unsigned long)getuid());
	if ((mkdir(dir, 0700) == -1 && errno != EEXIST) ||
	    lstat(dir, &st) == -1 || !S_ISDIR(st.st_mode) ||
	    st.st_uid != getuid() || (st.st_mode & 022) != 0)
		errx(MR_UNFIT, "%s: wanted a folder of this user alone", dir);
	path = mr_fmt("%s/%s_%u.%d", dir, d->address, d->port, level);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd == -1)
		err(MR_UNFIT, "%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == -1) {
		close(fd);
		fd = -1;
	}
	free(path);
	free(dir);
	return fd;
}

/* the device that an earlier run left this model's compile on, or NULL */
static struct device *
earlier(void)
{
	struct mr_err e;
	char *path, *name;
	size_t i, n;

	path = mr_fmt(".state/remote/%s", o.job);
	name = mr_slurp(path, 1024, &n, &e);
	free(path);
	for (i = 0; name != NULL && i < npool; i++)
		if (strcmp(pool[i].name, name) == 0)
			break;
	n = name != NULL;
	free(name);
	return n && i < npool ? &pool[i] : NULL;
}

/* Waits for a free device: one that compiles nothing before one that a next
 * model can be sent to. NULL when all are left out. */
static struct device *
pick(int *fd)
{
	struct device *first;
	size_t i, in;
	int level;

	for (;;) {
		first = earlier();
		if (first != NULL && is_out(first))
			first = NULL;
		for (level = 1, in = 0; level <= SLOTS; level++)
			for (i = 0; i < npool; i++) {
				if (is_out(&pool[i]))
					continue;
				in++;
				if (first != NULL && first != &pool[i])
					continue;
				if ((*fd = slot(&pool[i], level)) != -1)
					return &pool[i];
			}
		if (in == 0)
			return NULL;
		if (stopped)
			return NULL;
		pause_ms(50);
	}
}

/* ---- signals: the child ends, the job on the device goes on ---- */

static volatile sig_atomic_t child;

static void
on_end(int sig)
{
	stopped = sig;
	if (child > 0)
		kill((pid_t)child, SIGKILL);
}

static void
catch_ends(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa, was;
	size_t i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_end;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		sigaction(ends[i], NULL, &was);
		if (was.sa_handler != SIG_IGN)
			sigaction(ends[i], &sa, NULL);
	}
}

/* ends as the signal would have ended us */
static void
end_stopped(const struct device *d)
{
	if (d != NULL && d->sh != NULL && d->sh->started)
		warnx("%s: the %s goes on at %s: make %s/%s%s takes its "
		    "result, make cancel/%s stops it", o.id, o.validate ?
		    "validation" : "compile", d->name, o.validate ?
		    "validate" : "compiled", o.id, o.validate ? "" : ".pkl",
		    o.id);
	signal(stopped, SIG_DFL);
	raise(stopped);
}

int
pool_await(pid_t pid)
{
	int ws;

	child = pid;
	if (stopped)
		kill(pid, SIGKILL);
	while (waitpid(pid, &ws, 0) == -1)
		if (errno != EINTR)
			err(MR_UNFIT, "waitpid");
	child = 0;
	return WIFEXITED(ws) ? WEXITSTATUS(ws) : MR_AGAIN;
}

/* ---- one model ---- */

/* Tries D until it answers or the retries are used up. A link that held for a
 * while has them all again: a long compile may see many faults. */
static int
try(struct device *d)
{
	unsigned n, seconds;
	int64_t start;
	int status;

	for (n = 0; ; n++) {
		start = mr_now_ms();
		status = pool_await(attempt(job_compile, d, -1));
		if (mr_now_ms() - start > 2000 * (int64_t)o.silence)
			n = 0;
		if (stopped)
			end_stopped(d);
		if (status == MR_OK || d->sh->scope != LINK || n >= o.retries)
			return status;
		seconds = n < 5 ? o.pause << (2 * n) : PAUSE_MAX;
		seconds = seconds > PAUSE_MAX ? PAUSE_MAX : seconds;
		warnx("%s: %s: %s: again in %u s (%u of %u)", o.id, d->name,
		    d->sh->why, seconds, n + 1, o.retries);
		pause_ms((long)seconds * 1000);
		if (stopped)
			end_stopped(d);
	}
}

/* what a killed child left beside the product's name */
static void
remove_torn(void)
{
	struct mr_out out;
	struct mr_err e;
	char *path;

	path = mr_fmt("compiled/.%s.pkl.tmp", o.id);
	if (access(path, F_OK) == 0) {
		free(path);
		path = mr_fmt("compiled/%s.pkl", o.id);
		if (mr_out_open(&out, path, &e) == 0)
			mr_out_abort(&out);
	}
	free(path);
}

int
pool_load(void)
{
	char *copy, *word, *rest;
	int rc, status = MR_OK;

	copy = mr_strdup(o.devices);
	for (word = strtok_r(copy, " \t", &rest); word != NULL;
	    word = strtok_r(NULL, " \t", &rest)) {
		if (npool == DEVICES)
			errx(MR_UNFIT, "DEVICES: more than %d", DEVICES);
		if (strcmp(word, "local") == 0)
			errx(MR_UNFIT, "DEVICES: local stands alone: its "
			    "artifacts are not a car's");
		pool[npool].name = mr_strdup(word);
		rc = is_out(&pool[npool]) ? MR_AGAIN :
		    policy_check(&pool[npool]);
		/* a name that does not resolve now is tried like a link */
		if (rc != MR_AGAIN)
			status = mr_worse(status, rc);
		npool++;
	}
	free(copy);
	if (npool == 0)
		errx(MR_UNFIT, "DEVICES: names no device");
	return status;
}

int
pool_compile(void)
{
	struct device *d;
	int fd, status;

	status = pool_load();
	if (status != MR_OK)
		return status;
	status = o.validate ? trial_load(&sources) : load_source(&sources);
	if (status != MR_OK)
		return status;
	catch_ends();
	while ((d = pick(&fd)) != NULL) {
		status = try(d);
		close(fd);
		if (status == MR_OK)
			return status;
		remove_torn();
		if (d->sh->scope == MODEL) {
			warnx("%s: %s: %s", o.id, d->name, d->sh->why);
			return status;
		}
		pool_leave_out(d, d->sh->scope, status, d->sh->why);
	}
	if (stopped)
		end_stopped(NULL);
	say_why();
	return pool_status();
}
