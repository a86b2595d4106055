/* Runs one stage of one model: its log, its failure record, its one line. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mr.h"
#include "step.h"

static void
usage(FILE *f)
{
	fputs("usage: step [-v] [-l logs] [-r results] [-c countfile] "
	    "[-n total]\n"
	    "            id stage -- command [argument ...]\n"
	    "       step -s [-l logs] [-r results] [-c countfile] "
	    "[-n total] [-k current]\n", f);
}

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Says in the last line what a status means that came without a word, or
 * from a signal. */
static void
explain(struct step *s, int status)
{
	char said[sizeof(s->last)];

	memcpy(said, s->last, sizeof(said));
	if (status > 128 && status <= 128 + 64)
		snprintf(s->last, sizeof(s->last), "killed by signal %d%s%.*s",
		    status - 128, said[0] != '\0' ? ": " : "", CAP - 40, said);
	else if (said[0] == '\0')
		snprintf(s->last, sizeof(s->last),
		    "ended with status %d and said nothing", status);
}

/* The one line that people see; one write, so that jobs do not mix. */
static void
tell(const struct step *s, uint64_t n, double secs, const char *verdict,
    int good)
{
	char at[64], line[CAP + 300];
	int width;

	width = snprintf(at, sizeof(at), "%llu", (unsigned long long)s->total);
	if (n > 0 && s->total > 0)
		snprintf(at, sizeof(at), "%*llu/%llu", width,
		    (unsigned long long)n, (unsigned long long)s->total);
	else if (n > 0)
		snprintf(at, sizeof(at), "%3llu", (unsigned long long)n);
	else
		snprintf(at, sizeof(at), "-");
	snprintf(line, sizeof(line) - 1, "%-16s  %s  %-8s %7.1fs  %s%s%s",
	    s->id, at, s->stage, secs, verdict, good ? "" : ": ",
	    good ? "" : s->last);
	mr_one_line(line);
	memcpy(line + strlen(line), "\n", 2);
	count_erase();
	if (fputs(line, good ? stdout : stderr) != EOF)
		fflush(good ? stdout : stderr);
}

/* Writes down how the step ended and tells it; step's own status. */
static int
ended(struct step *s, int status, double secs)
{
	char *line, verdict[32];
	const char *word;
	int bad, fd = -1;
	uint64_t n = 0;
	double start = 0;

	word = status != 0 ? "failed" : s->current ? "current" : "ok";
	snprintf(verdict, sizeof(verdict), status != 0 ? "%s (%d)" : "%s",
	    word, status);
	if (status != 0)
		explain(s, status);
	bad = status != 0 ? record_write(s, status) : record_remove(s);
	if (s->counts != NULL) {
		line = status != 0 ? mr_fmt("%s %s %d %.1f %lld\n", s->id,
		    s->stage, status, secs, (long long)time(NULL)) :
		    mr_fmt("%s %s %s %.1f %lld\n", s->id, s->stage, word,
		    secs, (long long)time(NULL));
		n = count_add(s->counts, line, &fd, &start);
		free(line);
		bad |= n == 0;
	}
	tell(s, n, secs, verdict, status == 0);
	/* after a failure make has its own word to say first */
	if (status == 0)
		count_bar(n, s->total, start);
	if (fd != -1)
		close(fd);
	if (status != 0 && status != MR_UNFIT && status != MR_AGAIN)
		status = MR_NO;
	return bad || s->lost ? mr_worse(status, MR_UNFIT) : status;
}

/* Ends as the signal would have ended us: no verdict, no record. */
static void
end_stopped(struct step *s, double secs)
{
	char verdict[32];
	sigset_t set;
	int sig;

	sig = stopped;
	snprintf(verdict, sizeof(verdict), "stopped (signal %d)", sig);
	tell(s, 0, secs, verdict, 0);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int
run(struct step *s, char *argv[])
{
	double start, first;
	int fd, status;
	uint64_t n;

	if (!mr_id_ok(s->id))
		errx(MR_UNFIT, "%s: not a model id", s->id);
	if (!mr_id_ok(s->stage))
		errx(MR_UNFIT, "%s: %s: not a stage", s->id, s->stage);
	log_open(s, argv);
	if (s->counts != NULL && isatty(STDERR_FILENO)) {
		n = count_add(s->counts, "", &fd, &first);
		count_bar(n, s->total, first);
		close(fd);
	}
	start = seconds();
	status = child_run(s, argv);
	if (stopped && status != 0)
		end_stopped(s, seconds() - start);
	status = ended(s, status, seconds() - start);
	free(s->logpath);
	return mr_finish(status);
}

static uint64_t
number(int option, const char *text)
{
	uint64_t n;

	if (mr_number(text, 1000000000, &n) == -1)
		errx(MR_UNFIT, "-%c %s: wanted a number", option, text);
	return n;
}

int
main(int argc, char *argv[])
{
	static struct step s;	/* 80 KB: not on the stack */
	uint64_t current = 0;
	const char *verbose;
	int c, sum = 0;

	s.logs = "logs";
	s.results = "results";
	verbose = getenv("MR_VERBOSE");
	s.verbose = verbose != NULL && strcmp(verbose, "1") == 0;
	while ((c = getopt(argc, argv, "+c:k:l:n:r:svVh")) != -1)
		switch (c) {
		case 'c':
			s.counts = optarg;
			break;
		case 'k':
			current = number(c, optarg);
			break;
		case 'l':
			s.logs = optarg;
			break;
		case 'n':
			s.total = number(c, optarg);
			break;
		case 'r':
			s.results = optarg;
			break;
		case 's':
			sum = 1;
			break;
		case 'v':
			s.verbose = 1;
			break;
		case 'V':
			return mr_version();
		case 'h':
			usage(stdout);
			return mr_finish(MR_OK);
		default:
			usage(stderr);
			return MR_UNFIT;
		}
	argc -= optind;
	argv += optind;
	if (sum && argc == 0)
		return mr_finish(summary(&s, current));
	if (sum || argc < 4 || strcmp(argv[2], "--") != 0) {
		usage(stderr);
		return MR_UNFIT;
	}
	s.id = argv[0];
	s.stage = argv[1];
	return run(&s, argv + 3);
}
