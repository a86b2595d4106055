/* What a compile leaves behind: old artifacts, the new one, its parts. */
#include <sys/stat.h>
#include <sys/types.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

int
outputs_clear(const char *dir, const char *id, struct mr_err *e)
{
	static const char *const ends[] = {
		"_driving_tinygrad.pkl.sha256",
		"_driving_*_tinygrad.pkl.sha256", "_driving_tinygrad.pkl",
		"_driving_tinygrad.pkl.p[0-9][0-9]",
		"_driving_*_tinygrad.pkl", "_driving_*_metadata.pkl",
		"_driving_*_tinygrad.pkl.p[0-9][0-9]"
	};
	struct dirent *d;
	size_t i, n = strlen(id);
	DIR *dp;
	int rc = 0;

	for (i = 0; rc == 0 && i < sizeof(ends) / sizeof(ends[0]); i++) {
		if ((dp = opendir(dir)) == NULL)
			return mr_fail(e, "%s: %s", dir, strerror(errno));
		while (rc == 0 && (d = readdir(dp)) != NULL)
			if (strncmp(d->d_name, id, n) == 0 &&
			    fnmatch(ends[i], d->d_name + n, 0) == 0 &&
			    unlinkat(dirfd(dp), d->d_name, 0) == -1)
				rc = mr_fail(e, "%s/%s: %s", dir, d->d_name,
				    strerror(errno));
		closedir(dp);
	}
	return rc;
}

/* little-endian */
static uint64_t
le64(const unsigned char *b)
{
	uint64_t v = 0;
	int i;

	for (i = 7; i >= 0; i--)
		v = v << 8 | b[i];
	return v;
}

/* walks the blocks of an out-of-band artifact to its very end */
static int
check_blocks(int fd, const char *path, uint64_t size, struct mr_err *e)
{
	unsigned char head[8];
	uint64_t at = 0, n;

	while (at < size) {
		if (size - at < 8 || lseek(fd, (off_t)at, SEEK_SET) == -1 ||
		    mr_read(fd, head, 8) != 8 ||
		    (n = le64(head)) > size - at - 8)
			return mr_fail(e, "%s: a block runs past the end of "
			    "the file", path);
		at += 8 + n;
	}
	return 0;
}

int
output_check(const char *path, uint64_t *size, struct mr_err *e)
{
	unsigned char head[10] = { 0 }, tail = 0;
	struct stat st;
	uint64_t n;
	int fd, rc = 0;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return mr_fail(e, "%s: the compiler ended well, but wrote no "
		    "artifact", path);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    mr_read(fd, head, sizeof(head)) < 0 ||
	    lseek(fd, -1, SEEK_END) == -1 || mr_read(fd, &tail, 1) != 1) {
		rc = mr_fail(e, "%s: is empty or unreadable", path);
	} else if (*size = (uint64_t)st.st_size, n = le64(head),
	    head[8] == 0x80 && head[9] == 5 && n > 0 && n <= *size - 8) {
		rc = check_blocks(fd, path, *size, e);
	} else if (head[0] != 0x80 || head[1] < 4 || head[1] > 5 ||
	    tail != '.') {
		rc = mr_fail(e, "%s: is no whole pickle: begins with %02x "
		    "%02x, ends with %02x", path, head[0], head[1], tail);
	}
	close(fd);
	return rc;
}

int
split(const char *bin, const char *path, const char *out, uint64_t part,
    int force)
{
	char *tool, *bytes, *limit;
	const char *argv[12];
	size_t n = 0;
	int status;

	tool = mr_fmt("%s/pkl-split", bin);
	bytes = mr_fmt("%llu", (unsigned long long)part);
	limit = mr_fmt("%llu", (unsigned long long)SPLIT_LIMIT);
	argv[n++] = tool;
	if (force)
		argv[n++] = "-f";
	argv[n++] = "-l";
	argv[n++] = limit;
	argv[n++] = "-z";
	argv[n++] = bytes;
	argv[n++] = "-o";
	argv[n++] = out;
	argv[n++] = "--";
	argv[n++] = path;
	argv[n] = NULL;
	status = mr_run(argv, -2, -1, -1, 0);
	if (status == -1)
		warn("%s", tool);
	free(tool);
	free(bytes);
	free(limit);
	return status == -1 || status > MR_AGAIN ? MR_UNFIT : status;
}
