/* Re-hashes the files of a digest list, in parallel; prints what holds. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

enum {
	CHUNK = 1 << 17,	/* bytes of a read: it stays in the cache */
	THREADS_MAX = 64,
	PARTS_MAX = 100		/* of a set, as pkl-split makes it */
};

/* one line of the list */
struct item {
	char	*path;		/* as open(2) takes it */
	char	*shown;		/* as sha256sum would write it */
	char	 want[MR_HEX];
	char	*fault;		/* NULL: it holds */
	int	 done;
};

struct list {
	struct item	*item;
	size_t		 n, next;	/* next: the first that nobody took */
	pthread_mutex_t	 lock;
	pthread_cond_t	 turn;
};

static void
usage(FILE *f)
{
	fputs("usage: sha-verify [-q] [file]\n", f);
}

/* Undoes in place what sha256sum does to names: \\, \n and \r. */
static int
unescape(char *s)
{
	char *to;

	for (to = s; *s != '\0'; s++) {
		if (*s != '\\') {
			*to++ = *s;
			continue;
		}
		s++;
		if (*s == '\\')
			*to++ = '\\';
		else if (*s == 'n')
			*to++ = '\n';
		else if (*s == 'r')
			*to++ = '\r';
		else
			return -1;
	}
	*to = '\0';
	return 0;
}

/* The name as sha256sum writes it; the caller frees. */
static char *
escape(const char *s)
{
	char *text, *to;

	if (strpbrk(s, "\\\n\r") == NULL)
		return mr_strdup(s);
	to = text = mr_malloc(2 * strlen(s) + 2);
	*to++ = '\\';
	for (; *s != '\0'; s++) {
		if (*s == '\\' || *s == '\n' || *s == '\r')
			*to++ = '\\';
		*to++ = *s == '\n' ? 'n' : *s == '\r' ? 'r' : *s;
	}
	*to = '\0';
	return text;
}

/* Reads "digest  path", "digest *path" or either behind a backslash. */
static int
parse(char *line, size_t len, struct item *it)
{
	size_t i;
	int escaped;

	if (strlen(line) != len)
		return -1;	/* a NUL */
	escaped = *line == '\\';
	line += escaped;
	if (len - (size_t)escaped < 67 || line[64] != ' ' ||
	    (line[65] != ' ' && line[65] != '*'))
		return -1;
	memcpy(it->want, line, 64);
	it->want[64] = '\0';
	for (i = 0; i < 64; i++)
		if (it->want[i] >= 'A' && it->want[i] <= 'F')
			it->want[i] = (char)(it->want[i] + 'a' - 'A');
	if (!mr_oid_ok(it->want) || (escaped && unescape(line + 66) == -1))
		return -1;
	it->path = mr_strdup(line + 66);
	it->shown = escape(it->path);
	it->fault = NULL;
	it->done = 0;
	return 0;
}

/* Reads the list; a status. Comments (#) are skipped, as sha256sum does. */
static int
read_list(FILE *f, const char *name, struct list *l)
{
	int status = MR_OK;
	char *line = NULL;
	size_t size = 0, row;
	ssize_t len;

	for (row = 1; (len = getline(&line, &size, f)) != -1; row++) {
		if (len > 0 && line[len - 1] == '\n')
			line[--len] = '\0';
		if (line[0] == '#')
			continue;
		if ((l->n & (l->n - 1)) == 0)
			l->item = mr_realloc(l->item, sizeof(*l->item) *
			    (l->n > 0 ? l->n * 2 : 1));
		if (parse(line, (size_t)len, &l->item[l->n]) == 0) {
			l->n++;
			continue;
		}
		warnx("%s: line %zu: wanted 64 hex digits, two spaces and a "
		    "path", name, row);
		status = MR_UNFIT;
	}
	free(line);
	if (ferror(f)) {
		warn("%s: read", name);
		status = MR_UNFIT;
	}
	return status;
}

/* Adds what PATH holds to H, read through BUF; what is wrong, or NULL; the
 * caller frees. */
static char *
add(struct mr_sha256 *h, const char *path, char *buf)
{
	char *fault = NULL;
	struct stat st;
	ssize_t got;
	int fd;

	/* a FIFO must not hold us up before it is refused */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return mr_strdup(errno == ENOENT || errno == ENOTDIR ?
		    "missing" : strerror(errno));
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		fault = mr_strdup("not a regular file");
	} else {
		while ((got = mr_read(fd, buf, CHUNK)) > 0)
			mr_sha256_add(h, buf, (size_t)got);
		if (got == -1)
			fault = mr_fmt("read: %s", strerror(errno));
	}
	close(fd);
	return fault;
}

/* Adds PATH.p00, PATH.p01, ... up to the first that is not there. */
static char *
add_parts(struct mr_sha256 *h, const char *path, char *buf)
{
	char *part, *fault, *named;
	unsigned i;

	for (i = 0, fault = NULL; i < PARTS_MAX && fault == NULL; i++) {
		part = mr_fmt("%s.p%02u", path, i);
		if (i > 0 && access(part, F_OK) == -1) {
			free(part);
			break;
		}
		fault = add(h, part, buf);
		if (fault != NULL && i > 0) {
			named = mr_fmt("%s: %s", part, fault);
			free(fault);
			fault = named;
		}
		free(part);
	}
	return fault;
}

/* What is wrong with a file or a set of parts, NULL if nothing; the caller
 * frees. */
static char *
verify(const struct item *it, char *buf)
{
	struct mr_sha256 *h;
	char hex[MR_HEX], *fault;

	h = mr_sha256_new();
	if (access(it->path, F_OK) == -1 && errno == ENOENT)
		fault = add_parts(h, it->path, buf);
	else
		fault = add(h, it->path, buf);
	mr_sha256_end(h, hex);
	if (fault == NULL && strcmp(hex, it->want) != 0)
		fault = mr_fmt("sha256 is %s, wanted %s", hex, it->want);
	return fault;
}

static void *
worker(void *arg)
{
	struct list *l = arg;
	struct item *it;
	char *buf, *fault;

	buf = mr_malloc(CHUNK);
	pthread_mutex_lock(&l->lock);
	while (l->next < l->n) {
		it = &l->item[l->next++];
		pthread_mutex_unlock(&l->lock);
		fault = verify(it, buf);
		pthread_mutex_lock(&l->lock);
		it->fault = fault;
		it->done = 1;
		pthread_cond_signal(&l->turn);
	}
	pthread_mutex_unlock(&l->lock);
	free(buf);
	return NULL;
}

/* Starts the threads; their number. */
static size_t
start(struct list *l, pthread_t thread[THREADS_MAX])
{
	size_t i, n;
	long cores;

	/* OpenSSL is set up once, before threads could race for it */
	mr_sha256_end(mr_sha256_new(), NULL);
	cores = sysconf(_SC_NPROCESSORS_ONLN);
	n = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
	if (n > l->n)
		n = l->n;
	if (pthread_mutex_init(&l->lock, NULL) != 0 ||
	    pthread_cond_init(&l->turn, NULL) != 0)
		errx(MR_UNFIT, "cannot start a thread");
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, worker, l) != 0)
			break;
	if (i == 0 && n > 0)
		errx(MR_UNFIT, "cannot start a thread");
	return i;
}

/* Tells of each item in the order of the list, as soon as it is known. */
static int
tell(struct list *l, int quiet)
{
	int status = MR_OK;
	struct item *it;
	size_t i;

	for (i = 0; i < l->n; i++) {
		it = &l->item[i];
		pthread_mutex_lock(&l->lock);
		while (!it->done)
			pthread_cond_wait(&l->turn, &l->lock);
		pthread_mutex_unlock(&l->lock);
		if (it->fault != NULL) {
			warnx("%s: %s", it->shown, it->fault);
			status = MR_NO;
		} else if (!quiet) {
			puts(it->shown);
		}
		free(it->path);
		free(it->shown);
		free(it->fault);
	}
	return status;
}

/* Verifies all of a list that is open; a status. */
static int
run(FILE *f, const char *name, int quiet)
{
	static struct list l;
	pthread_t thread[THREADS_MAX];
	size_t i, n;
	int status;

	status = read_list(f, name, &l);
	n = start(&l, thread);
	status = mr_worse(status, tell(&l, quiet));
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(l.item);
	return status;
}

int
main(int argc, char *argv[])
{
	int c, quiet = 0, status;
	FILE *f = stdin;

	while ((c = getopt(argc, argv, "qVh")) != -1)
		switch (c) {
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
	if (argc - optind == 1)
		f = fopen(argv[optind], "re");
	if (f == NULL)
		err(MR_UNFIT, "%s", argv[optind]);
	status = run(f, argc - optind == 1 ? argv[optind] : "standard input",
	    quiet);
	if (f != stdin)
		fclose(f);
	return mr_finish(status);
}
