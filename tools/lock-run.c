/* Runs a command while a kernel lock is held, and names who holds it. */
#include <sys/file.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mr.h"

enum { TEXT = 512 };	/* bytes of "HOST PID COMMAND\n", NUL included */

static void
usage(FILE *f)
{
	fputs("usage: lock-run [-w seconds] file command [argument ...]\n", f);
}

/* Control characters become '?', so that no name can paint the terminal. */
static void
printable(char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

/* this machine's name, without spaces since one ends it in the text */
static void
hostname(char *host, size_t n)
{
	char *s;

	if (gethostname(host, n) == -1 || host[0] == '\0')
		snprintf(host, n, "localhost");
	host[n - 1] = '\0';
	for (s = host; *s != '\0'; s++)
		if (*s == ' ')
			*s = '-';
}

/* Writes who holds the lock. It informs only: losing it is no error. */
static void
sign(int fd, char *const argv[])
{
	char text[TEXT], host[256];
	size_t n;

	hostname(host, sizeof(host));
	snprintf(text, sizeof(text) - 1, "%s %ld", host, (long)getpid());
	for (; *argv != NULL; argv++) {
		n = strlen(text);
		snprintf(text + n, sizeof(text) - 1 - n, " %s", *argv);
	}
	printable(text);
	n = strlen(text);
	text[n++] = '\n';
	if (ftruncate(fd, 0) == -1 || pwrite(fd, text, n, 0) == -1)
		warn("lock: its text could not be written");
}

/* Says who holds FILE, from its text and its date; END closes the line. */
static void
blame(const char *file, int fd, const char *end)
{
	char text[TEXT], host[256], since[32], *command;
	const char *gone;
	struct stat st;
	struct tm tm;
	ssize_t n;
	long pid;

	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	printable(text);
	command = strchr(text, ' ');
	pid = command != NULL ? strtol(command + 1, &command, 10) : 0;
	if (pid <= 0 || *command != ' ' || fstat(fd, &st) == -1 ||
	    localtime_r(&st.st_mtime, &tm) == NULL ||
	    strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm) == 0) {
		warnx("%s: held by a process that left no name%s", file, end);
		return;
	}
	*strchr(text, ' ') = '\0';
	hostname(host, sizeof(host));
	gone = strcmp(text, host) == 0 && kill((pid_t)pid, 0) == -1 &&
	    errno == ESRCH ? " (ended, but a child of it lives on)" : "";
	warnx("%s: held by %s, pid %ld%s, since %s: %s%s", file, text, pid,
	    gone, since, command + 1, end);
}

/* Opens FILE on a descriptor that shells leave alone, kept over exec. */
static int
lock_open(const char *file)
{
	int fd, high;

	fd = open(file, O_RDWR | O_CREAT | O_NOCTTY, 0666);
	if (fd == -1 && errno == ENOENT)
		errx(MR_UNFIT, "%s: its folder does not exist", file);
	if (fd == -1)
		err(MR_UNFIT, "%s", file);
	high = fcntl(fd, F_DUPFD, 10);
	if (high == -1)
		err(MR_UNFIT, "%s: dup", file);
	close(fd);
	return high;
}

/* Is FD still what FILE names? A removed file locks nobody out. */
static int
still_named(const char *file, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(file, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Tries once: the locked descriptor, or -1 with *BUSY the open, busy one. */
static int
lock_try(const char *file, int *busy)
{
	int fd;

	for (;;) {
		fd = lock_open(file);
		while (flock(fd, LOCK_EX | LOCK_NB) == -1) {
			if (errno == EINTR)
				continue;
			if (errno != EWOULDBLOCK)
				err(MR_UNFIT, "%s: flock", file);
			*busy = fd;
			return -1;
		}
		if (still_named(file, fd))
			return fd;
		close(fd);
	}
}

/* Waits until FILE is free, up to SECONDS; -1 when it is not. */
static int
lock(const char *file, uint64_t seconds)
{
	const struct timespec nap = { 0, 100000000 };
	struct timespec now, start;
	int busy, fd, told;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (told = 0; (fd = lock_try(file, &busy)) == -1; told = 1) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((uint64_t)(now.tv_sec - start.tv_sec) >= seconds) {
			/* who has just locked it may not have signed yet */
			nanosleep(&nap, NULL);
			blame(file, busy, "");
			return -1;
		}
		if (!told)
			blame(file, busy, "; waiting");
		close(busy);
		nanosleep(&nap, NULL);
	}
	return fd;
}

int
main(int argc, char *argv[])
{
	uint64_t seconds;
	int c, fd;

	seconds = 0;
	while ((c = getopt(argc, argv, "+w:Vh")) != -1)
		switch (c) {
		case 'w':
			if (mr_number(optarg, 1000000000, &seconds) == -1)
				errx(MR_UNFIT, "-w %s: wanted seconds",
				    optarg);
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
	if (argc < 2) {
		usage(stderr);
		return MR_UNFIT;
	}
	fd = lock(argv[0], seconds);
	if (fd == -1)
		return mr_finish(MR_AGAIN);
	sign(fd, argv + 1);
	execvp(argv[1], argv + 1);
	warn("%s", argv[1]);
	return mr_finish(MR_UNFIT);
}
