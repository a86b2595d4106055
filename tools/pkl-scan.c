/* Lists what a pickle imports, without running it; refuses what is hostile. */
#include <sys/stat.h>

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

enum { CHUNK = 1 << 17 };	/* bytes of a read: it stays in the cache */

static void
usage(FILE *f)
{
	fputs("usage: pkl-scan [-q] [-a LIST]... [FILE]\n", f);
}

/* Feeds all of FD; seeks over weights where it can. Status of the reading. */
static int
scan(struct mr_pickle *p, int fd, int seekable, const char *name)
{
	static char buf[CHUNK];
	struct mr_err e;
	uint64_t skip;
	ssize_t got;

	for (;;) {
		skip = seekable ? mr_pickle_skip(p) : 0;
		if (skip > CHUNK) {
			if (lseek(fd, (off_t)skip, SEEK_CUR) == -1)
				break;
			mr_pickle_skipped(p, skip);
		}
		got = mr_read(fd, buf, sizeof(buf));
		if (got == -1)
			break;
		/* what is wrong, mr_pickle_end says again */
		if (got == 0 || mr_pickle_feed(p, buf, (size_t)got, &e) == -1)
			return MR_OK;
	}
	warn("%s: read", name);
	return MR_UNFIT;
}

/* Prints the imports, and says which are not on the lists. */
static int
tell(const struct mr_pickle *p, int lists, int quiet, const char *name)
{
	const struct mr_import *m;
	size_t i, n;
	int status = MR_OK;

	m = mr_pickle_imports(p, &n);
	for (i = 0; i < n; i++) {
		if (!quiet)
			printf("%" PRIu64 " %s %s\n", m[i].count, m[i].module,
			    m[i].name);
		if (!lists || m[i].listed)
			continue;
		warnx("%s: imports %s %s, which no list has", name,
		    m[i].module, m[i].name);
		status = MR_NO;
	}
	return status;
}

static int
run(int fd, const char *name, const struct mr_imports *list, int quiet)
{
	struct mr_pickle *p;
	struct stat st;
	struct mr_err e;
	int regular, status;

	regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	if (regular && lseek(fd, 0, SEEK_CUR) != 0)
		regular = 0;	/* the size of what is left is not that */
	p = mr_pickle_new(regular ? (uint64_t)st.st_size : UINT64_MAX, list);
	status = scan(p, fd, regular, name);
	if (status == MR_OK && mr_pickle_end(p, &e) == -1) {
		warnx("%s: %s", name, e.text);
		status = MR_NO;
	}
	if (status == MR_OK)
		status = tell(p, list != NULL, quiet, name);
	mr_pickle_free(p);
	return status;
}

int
main(int argc, char *argv[])
{
	struct mr_imports *list = NULL;
	const char *name = "standard input";
	struct mr_err e;
	int c, fd = STDIN_FILENO, quiet = 0, status;

	while ((c = getopt(argc, argv, "a:qVh")) != -1)
		switch (c) {
		case 'a':
			if (list == NULL)
				list = mr_imports_new();
			if (mr_imports_load(list, optarg, &e) == -1)
				errx(MR_UNFIT, "%s", e.text);
			break;
		case 'q':
			quiet = 1;
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
	if (argc - optind > 1) {
		usage(stderr);
		return MR_UNFIT;
	}
	if (argc - optind == 1) {
		name = argv[optind];
		fd = open(name, O_RDONLY | O_CLOEXEC);
	}
	if (fd == -1)
		err(MR_UNFIT, "%s", name);
	status = run(fd, name, list, quiet);
	if (fd != STDIN_FILENO)
		close(fd);
	mr_imports_free(list);
	return mr_finish(status);
}
