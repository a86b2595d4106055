/* All devices at once: who they are, what they do. */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

/* starts WHAT on each; FD[i] is what it prints, PID[i] 0 where none runs */
static void
start_all(void (*what)(struct device *), pid_t pid[], int fd[])
{
	int ends[2];
	size_t i;

	for (i = 0; i < npool; i++) {
		pid[i] = 0;
		if (pool[i].out != 0)
			continue;
		if (pipe(ends) == -1)
			err(MR_UNFIT, "pipe");
		fcntl(ends[0], F_SETFD, FD_CLOEXEC);
		fcntl(ends[1], F_SETFD, FD_CLOEXEC);
		pid[i] = attempt(what, &pool[i], ends[1]);
		close(ends[1]);
		fd[i] = ends[0];
	}
}

/* all that a child printed; the caller frees */
static char *
printed(int fd)
{
	char *text;
	ssize_t n;

	text = mr_malloc(MR_BUF + 1);
	n = mr_read(fd, text, MR_BUF);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return text;
}

/* Runs WHAT on all devices; said[i] is what it printed, to be freed, or NULL
 * where it failed, which pool[i].out tells. */
static void
ask_all(void (*what)(struct device *), char *said[])
{
	pid_t pid[DEVICES] = { 0 };
	int fd[DEVICES] = { 0 }, status;
	size_t i;

	start_all(what, pid, fd);
	for (i = 0; i < npool; i++) {
		said[i] = NULL;
		if (pid[i] == 0)
			continue;
		said[i] = printed(fd[i]);
		status = pool_await(pid[i]);
		if (status == MR_OK)
			continue;
		pool[i].out = status;
		free(said[i]);
		said[i] = NULL;
	}
}

int
ask_each(void (*what)(struct device *))
{
	char *said[DEVICES] = { NULL };
	size_t i, n = 0;
	int status;

	status = pool_load();
	if (status != MR_OK)
		return status;
	ask_all(what, said);
	for (i = 0; i < npool; i++) {
		if (said[i] != NULL)
			fputs(said[i], stdout);
		else
			warnx("%s: %s", pool[i].name, pool[i].sh->why);
		n += said[i] == NULL || said[i][0] != '\0';
		free(said[i]);
	}
	if (n == 0)
		printf("%s: nothing of it is on a device\n", o.id);
	return pool_status();
}

/* where TEXT's compiler differs from that of FIRST, or NULL; caller frees */
static char *
differs(const char *text, const char *first)
{
	struct work a, b;
	struct mr_json lines;
	char *why;

	if (work_identity(&a, first, "identity") != MR_OK ||
	    work_identity(&b, text, "identity") != MR_OK)
		return mr_strdup("unreadable");
	lines = mr_json_object();
	mr_key_record(&a.device, &lines, "");
	why = mr_key_diff(&b.device, lines, "");
	mr_json_free(lines);
	mr_key_free(&a.device);
	mr_key_free(&b.device);
	mr_json_free(a.identity);
	mr_json_free(b.identity);
	return why;
}

/* writes the identity that all compiles of this run are to have */
static void
remember(const char *text)
{
	const char *run = getenv("MR_RUN");
	struct mr_out out;
	struct mr_err e;
	char *path;

	if (run == NULL)
		return;
	path = mr_fmt("%s/identity.json", run);
	if (mr_out_open(&out, path, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	if (mr_write(out.fd, text, strlen(text)) == -1)
		err(MR_UNFIT, "%s", path);
	if (mr_out_commit(&out, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	free(path);
}

int
ask_identity_of_all(void)
{
	char *said[DEVICES] = { NULL }, *why;
	size_t i, first;
	int status;

	status = pool_load();
	if (status != MR_OK)
		return status;
	policy_print(pool, npool);
	ask_all(job_identity, said);
	for (first = 0; first < npool && said[first] == NULL; first++)
		;
	for (i = 0; i < npool; i++)
		if (said[i] == NULL && first < npool)
			pool_leave_out(&pool[i], DEVICE, pool[i].out,
			    pool[i].sh->why);
		else if (said[i] == NULL)
			warnx("%s: %s", pool[i].name, pool[i].sh->why);
	if (first == npool)
		return pool_status();
	for (i = first + 1; i < npool; i++) {
		why = said[i] == NULL ? NULL : differs(said[i], said[first]);
		if (why != NULL) {
			char *text = mr_fmt("its compiler is not that of %s: "
			    "%s", pool[first].name, why);

			pool_leave_out(&pool[i], DEVICE, MR_UNFIT, text);
			free(text);
		}
		free(why);
		free(said[i]);
	}
	remember(said[first]);
	fputs(said[first], stdout);
	free(said[first]);
	return MR_OK;
}
