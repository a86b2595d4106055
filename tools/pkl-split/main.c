/* Cuts an artifact into repository-safe parts with a digest, in one pass. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"
#include "split.h"

#ifdef __APPLE__
#define MTIM st_mtimespec
#define CTIM st_ctimespec
#else
#define MTIM st_mtim
#define CTIM st_ctim
#endif

/* what the command line says */
struct job {
	const char	*file, *results, *id;
	char		*record;	/* results/ID_artifact.json or NULL */
	uint64_t	 limit;
	int		 force;
};

static void
usage(FILE *f)
{
	fputs("usage: pkl-split [-f] [-l limit] [-n name] [-z part] "
	    "-o dir file\n"
	    "       pkl-split [-f] [-l limit] [-n name] [-z part] "
	    "-r results -i id -o dir file\n", f);
}

/* Can NAME stand in a folder and in a digest line, and not pass for a part
 * or a digest itself? */
static int
name_ok(const char *name)
{
	const char *s;
	size_t n;

	n = strlen(name);
	if (n == 0 || n > 200 || name[0] == '.')
		return 0;
	for (s = name; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f || *s == '/' ||
		    *s == '\\')
			return 0;
	if (n >= 7 && strcmp(name + n - 7, ".sha256") == 0)
		return 0;
	while (n > 0 && strchr("0123456789", name[n - 1]) != NULL)
		n--;
	return strlen(name + n) < 2 || n < 2 || strncmp(name + n - 2, ".p",
	    2) != 0;
}

/* Opens the file and plans the set; a status. */
static int
plan(const struct job *j, struct set *s, int *fd, struct stat *st)
{
	uint64_t parts, fit;
	struct stat there;
	char *path;

	/* a FIFO must not hold us up before it is refused */
	*fd = open(j->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd == -1 || fstat(*fd, st) == -1) {
		warn("%s", j->file);
		return MR_UNFIT;
	}
	if (!S_ISREG(st->st_mode)) {
		warnx("%s: not a regular file", j->file);
		return MR_UNFIT;
	}
	s->size = (uint64_t)st->st_size;
	if (s->size == 0) {
		warnx("%s: empty, wanted an artifact", j->file);
		return MR_NO;
	}
	s->n = 0;
	if (s->size > j->limit || j->force) {
		parts = (s->size - 1) / s->part + 1;
		fit = (s->size - 1) / PARTS_MAX + 1;
		if (parts > PARTS_MAX) {
			warnx("%s: %llu parts of %llu bytes, wanted at most "
			    "%d: -z %llu would fit", j->file,
			    (unsigned long long)parts,
			    (unsigned long long)s->part, PARTS_MAX,
			    (unsigned long long)fit);
			return MR_NO;
		}
		s->n = (size_t)parts;
	}
	path = mr_fmt("%s/%s", s->dir, s->name);
	s->keep = stat(path, &there) == 0 && there.st_dev == st->st_dev &&
	    there.st_ino == st->st_ino;
	free(path);
	return MR_OK;
}

/* Is FILE, read through FD, still what it was before it was read? */
static int
unchanged(const char *file, int fd, const struct stat *was)
{
	struct stat st[2];
	char more;
	int i;

	if (read(fd, &more, 1) != 0 || fstat(fd, &st[0]) == -1 ||
	    stat(file, &st[1]) == -1)
		return 0;
	for (i = 0; i < 2; i++)
		if (st[i].st_dev != was->st_dev ||
		    st[i].st_ino != was->st_ino ||
		    st[i].st_size != was->st_size ||
		    st[i].MTIM.tv_sec != was->MTIM.tv_sec ||
		    st[i].MTIM.tv_nsec != was->MTIM.tv_nsec ||
		    st[i].CTIM.tv_sec != was->CTIM.tv_sec ||
		    st[i].CTIM.tv_nsec != was->CTIM.tv_nsec)
			return 0;
	return 1;
}

/* Writes the set under temporary names and checks what was read against
 * WANTED, the record's digest, if there is one; a status. */
static int
fill(const struct job *j, struct set *s, int fd, const struct stat *st,
    const char *wanted, char hex[MR_HEX])
{
	struct mr_err e;

	if (set_open(s, &e) == -1 || set_fill(s, fd, j->file, hex, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	if (s->got != s->size || !unchanged(j->file, fd, st)) {
		warnx("%s: changed while it was read", j->file);
		return MR_NO;
	}
	if (wanted != NULL && strcmp(hex, wanted) != 0) {
		warnx("%s: sha256 is %s, its record says %s: make force/%s",
		    j->file, hex, wanted, j->id);
		return MR_NO;
	}
	return MR_OK;
}

/* The filter form: no records. */
static int
split(const struct job *j, struct set *s)
{
	char hex[MR_HEX];
	struct mr_err e;
	struct stat st;
	int fd, status;

	status = plan(j, s, &fd, &st);
	if (status == MR_OK) {
		status = fill(j, s, fd, &st, NULL, hex);
		if (status == MR_OK && set_publish(s, hex, &e) == -1) {
			warnx("%s", e.text);
			status = MR_UNFIT;
		}
		set_close(s);
	}
	if (fd != -1)
		close(fd);
	return status;
}

/* The pipeline's form, between two states of the record. */
static int
split_recorded(const struct job *j, struct set *s, struct mr_json *record,
    const char *wanted, int64_t size)
{
	char hex[MR_HEX];
	struct mr_err e;
	struct stat st;
	int fd, status;

	status = plan(j, s, &fd, &st);
	if (status == MR_OK && (uint64_t)size != s->size) {
		warnx("%s: %llu bytes, its record says %lld: make force/%s",
		    j->file, (unsigned long long)s->size, (long long)size,
		    j->id);
		status = MR_NO;
	} else if (status == MR_OK) {
		status = fill(j, s, fd, &st, wanted, hex);
		if (status == MR_OK && (record_stale(record, j->record,
		    &e) == -1 || set_publish(s, hex, &e) == -1 ||
		    record_multipart(s, j->id, hex, &e) == -1)) {
			warnx("%s", e.text);
			status = MR_UNFIT;
		}
		/* what is temporary goes before the record says ready */
		set_close(s);
		if (status == MR_OK && record_ready(record, j->record, s, hex,
		    j->limit, &e) == -1) {
			warnx("%s", e.text);
			status = MR_UNFIT;
		}
	}
	if (fd != -1)
		close(fd);
	if (status == MR_OK)
		printf("%s: %llu bytes, parts: %zu, sha256 %s\n", s->name,
		    (unsigned long long)s->size, s->n, hex);
	return status;
}

/* Reads the record and splits. */
static int
pipeline(struct job *j, struct set *s)
{
	struct mr_json record;
	char wanted[MR_HEX];
	struct mr_err e;
	int64_t size;
	int status;

	j->record = mr_fmt("%s/%s_artifact.json", j->results, j->id);
	if (record_load(&record, j->record, wanted, &size, &e) == -1) {
		warnx("%s: make compiled/%s.pkl", e.text, j->id);
		status = MR_NO;
	} else {
		status = split_recorded(j, s, &record, wanted, size);
		mr_json_free(record);
	}
	free(j->record);
	return status;
}

static uint64_t
bytes(int option, const char *text)
{
	uint64_t n;

	if (mr_number(text, UINT64_C(1) << 53, &n) == -1 || n == 0)
		errx(MR_UNFIT, "-%c %s: wanted a number of bytes", option,
		    text);
	return n;
}

/* Checks what belongs together and names the set. */
static int
run(struct job *j, struct set *s)
{
	char *name = NULL;
	const char *slash;
	int status;

	if (s->part > j->limit)
		errx(MR_UNFIT, "-z %llu: a part would be over the limit, "
		    "-l %llu", (unsigned long long)s->part,
		    (unsigned long long)j->limit);
	if (j->id != NULL && !mr_id_ok(j->id))
		errx(MR_UNFIT, "-i %s: not a model id", j->id);
	if (s->name == NULL && j->id != NULL) {
		name = mr_fmt("%s_driving_tinygrad.pkl", j->id);
		s->name = name;
	} else if (s->name == NULL) {
		slash = strrchr(j->file, '/');
		s->name = slash == NULL ? j->file : slash + 1;
	}
	if (!name_ok(s->name))
		errx(MR_UNFIT, "%s: \"%s\" cannot name an artifact", j->file,
		    s->name);
	status = j->id != NULL ? pipeline(j, s) : split(j, s);
	free(name);
	return status;
}

int
main(int argc, char *argv[])
{
	static struct job j = { .limit = 100000000 };
	static struct set s = { .part = 99614720 };
	int c;

	while ((c = getopt(argc, argv, "fi:l:n:o:r:z:Vh")) != -1)
		switch (c) {
		case 'f':
			j.force = 1;
			break;
		case 'i':
			j.id = optarg;
			break;
		case 'l':
			j.limit = bytes(c, optarg);
			break;
		case 'n':
			s.name = optarg;
			break;
		case 'o':
			s.dir = optarg;
			break;
		case 'r':
			j.results = optarg;
			break;
		case 'z':
			s.part = bytes(c, optarg);
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
	if (argc - optind != 1 || s.dir == NULL ||
	    (j.id == NULL) != (j.results == NULL)) {
		usage(stderr);
		return MR_UNFIT;
	}
	j.file = argv[optind];
	return mr_finish(run(&j, &s));
}
