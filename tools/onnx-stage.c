/* Copies an ONNX model to its final name while it is walked and hashed. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

#ifdef __linux__
/* glibc declares it under _GNU_SOURCE only */
extern ssize_t copy_file_range(int, off_t *, int, off_t *, size_t, unsigned);
#endif

enum {
	FOLLOW = 64 << 10	/* read back at once: fits in a core's cache */
};

/* The copy runs ahead; a second thread follows it in the output file, hashing
 * and walking what was written. So the kernel may copy file to file, neither
 * waits for the other, and nothing but the digest's speed counts. */
struct job {
	const char	*path;
	const char	*digest;	/* wanted, or NULL */
	uint64_t	 want;		/* bytes wanted, or UINT64_MAX */
	uint64_t	 known;		/* bytes of the input, or UINT64_MAX */
	struct mr_out	 out;

	pthread_t	 thread;
	pthread_mutex_t	 lock;		/* of the next three */
	pthread_cond_t	 moved;
	uint64_t	 size;		/* bytes written so far */
	int		 last;		/* no more will come */

	int		 follower;	/* the follower's status */
	struct mr_err	 why;
	struct mr_onnx	*walker;
	char		 hex[MR_HEX];
};

static const char usage_line[] =
    "usage: onnx-stage [-d SHA256] [-z SIZE] -o FILE";

/* ---- the follower ---- */

/* Waits until more than AT bytes are written; returns how many. */
static uint64_t
written(struct job *j, uint64_t at)
{
	uint64_t size;

	pthread_mutex_lock(&j->lock);
	while (j->size == at && !j->last)
		pthread_cond_wait(&j->moved, &j->lock);
	size = j->size;
	pthread_mutex_unlock(&j->lock);
	return size;
}

/* Says that N more bytes are written, or, if LAST, that no more will be; has
 * the follower found fault? */
static int
advance(struct job *j, size_t n, int last)
{
	int fault;

	pthread_mutex_lock(&j->lock);
	j->size += n;
	j->last |= last;
	fault = j->follower != MR_OK;
	pthread_cond_signal(&j->moved);
	pthread_mutex_unlock(&j->lock);
	return fault;
}

/* Walks and hashes the bytes from *AT to END. */
static int
follow_to(struct job *j, uint64_t *at, uint64_t end, unsigned char *buf,
    struct mr_sha256 *sha)
{
	ssize_t got;
	size_t n;

	for (; *at < end; *at += (uint64_t)got) {
		n = end - *at < FOLLOW ? (size_t)(end - *at) : FOLLOW;
		got = pread(j->out.fd, buf, n, (off_t)*at);
		if (got == -1 && errno == EINTR) {
			got = 0;
			continue;
		}
		if (got <= 0) {
			mr_fail(&j->why, "reading back: %s", got == 0 ?
			    "the file is shorter" : strerror(errno));
			return MR_UNFIT;
		}
		if (mr_onnx_feed(j->walker, buf, (size_t)got, &j->why) == -1)
			return MR_NO;
		mr_sha256_add(sha, buf, (size_t)got);
	}
	return MR_OK;
}

static void *
follow(void *arg)
{
	struct job *j = arg;
	struct mr_sha256 *sha;
	unsigned char *buf;
	uint64_t at = 0, end;
	int status = MR_OK;

	buf = mr_malloc(FOLLOW);
	sha = mr_sha256_new();
	while (status == MR_OK && (end = written(j, at)) > at)
		status = follow_to(j, &at, end, buf, sha);
	mr_sha256_end(sha, j->hex);
	free(buf);
	if (status == MR_OK && mr_onnx_end(j->walker, &j->why) == -1)
		status = MR_NO;
	pthread_mutex_lock(&j->lock);
	j->follower = status;
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* ---- the copy ---- */

/* Bytes left in standard input, where it is a regular file. */
static uint64_t
input_size(void)
{
	struct stat st;
	off_t at;

	if (fstat(STDIN_FILENO, &st) == -1 || !S_ISREG(st.st_mode))
		return UINT64_MAX;
	at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (at == -1 || at > st.st_size)
		return UINT64_MAX;
	return (uint64_t)(st.st_size - at);
}

/* Is this the beginning, or all if N is less than a buffer, of a model? So
 * nothing is written for what is none, and a pointer is not called a model of
 * a wrong size. */
static int
judge(const struct job *j, const unsigned char *buf, size_t n)
{
	struct mr_onnx *w;
	struct mr_err e;
	int rc;

	w = mr_onnx_new(j->known);
	rc = mr_onnx_feed(w, buf, n, &e);
	if (rc == 0 && n < MR_BUF)
		rc = mr_onnx_end(w, &e);
	mr_onnx_free(w);
	if (rc == 0)
		return MR_OK;
	warnx("%s: %s", j->path, e.text);
	return MR_NO;
}

/* Opens the output, if the size is right and there is room for it. */
static int
begin(struct job *j)
{
	struct mr_err e;
	uint64_t room, need;

	if (j->want != UINT64_MAX && j->known != UINT64_MAX &&
	    j->known != j->want) {
		warnx("%s: size is %" PRIu64 ", wanted %" PRIu64, j->path,
		    j->known, j->want);
		return MR_NO;
	}
	if (mr_out_open(&j->out, j->path, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	need = j->known != UINT64_MAX ? j->known : j->want;
	if (need != UINT64_MAX && mr_space(j->out.tmp, &room) == 0 &&
	    room < need) {
		warnx("%s: no space: %" PRIu64 " bytes are free, wanted %"
		    PRIu64, j->path, room, need);
		return MR_UNFIT;
	}
	return MR_OK;
}

/* The next bytes by the kernel alone, which on some file systems shares the
 * blocks; 0 where it cannot, or at the end: reading tells. */
static size_t
copy_in_kernel(const struct job *j)
{
#ifdef __linux__
	ssize_t n;

	if (j->known != UINT64_MAX) {
		n = copy_file_range(STDIN_FILENO, NULL, j->out.fd, NULL,
		    MR_BUF, 0);
		return n > 0 ? (size_t)n : 0;
	}
#endif
	(void)j;
	return 0;
}

/* Copies the rest, of which the first N bytes are in BUF. */
static int
copy(struct job *j, unsigned char *buf, size_t n)
{
	ssize_t got = (ssize_t)n;
	int fault = 0;

	while (got > 0 && !fault) {
		if (mr_write(j->out.fd, buf, (size_t)got) == -1) {
			warn("%s: write", j->path);
			return MR_UNFIT;
		}
		fault = advance(j, (size_t)got, 0);
		while (!fault && (n = copy_in_kernel(j)) > 0)
			fault = advance(j, n, 0);
		if (j->want != UINT64_MAX && j->size > j->want) {
			warnx("%s: size is over %" PRIu64 ", wanted %" PRIu64,
			    j->path, j->want, j->want);
			return MR_NO;
		}
		got = mr_read(STDIN_FILENO, buf, MR_BUF);
	}
	if (got == -1) {
		warn("standard input");
		return MR_UNFIT;
	}
	return MR_OK;
}

/* Copies while the follower follows; is it what was wanted? */
static int
transfer(struct job *j, unsigned char *buf, size_t n)
{
	int status;

	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->moved, NULL);
	errno = pthread_create(&j->thread, NULL, follow, j);
	if (errno != 0)
		err(MR_UNFIT, "thread");
	status = copy(j, buf, n);
	advance(j, 0, 1);
	pthread_join(j->thread, NULL);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->moved);
	if (status != MR_OK)
		return status;
	if (j->follower != MR_OK) {
		warnx("%s: %s", j->path, j->why.text);
		return j->follower;
	}
	if (j->want != UINT64_MAX && j->size != j->want) {
		warnx("%s: size is %" PRIu64 ", wanted %" PRIu64, j->path,
		    j->size, j->want);
		return MR_NO;
	}
	if (j->digest != NULL && strcmp(j->hex, j->digest) != 0) {
		warnx("%s: sha256 is %s, wanted %s", j->path, j->hex,
		    j->digest);
		return MR_NO;
	}
	return MR_OK;
}

static void
record(const struct job *j)
{
	struct mr_onnx_info m;

	mr_onnx_info(j->walker, &m);
	printf("{\"path\": ");
	mr_json_quote(stdout, j->path);
	printf(", \"size\": %" PRIu64 ", \"sha256\": \"%s\", \"inputs\": ",
	    j->size, j->hex);
	mr_json_shapes(stdout, m.inputs, m.ninputs);
	printf(", \"outputs\": ");
	mr_json_shapes(stdout, m.outputs, m.noutputs);
	printf(", \"checkpoint\": ");
	if (m.checkpoint != NULL)
		mr_json_quote(stdout, m.checkpoint);
	else
		printf("null");
	printf("}\n");
}

/* The record first: a model whose record is lost gets no name. */
static int
publish(struct job *j)
{
	struct mr_err e;

	record(j);
	if (fflush(stdout) != 0)
		return MR_UNFIT;	/* mr_finish says so */
	if (mr_out_commit(&j->out, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	return MR_OK;
}

static int
stage(struct job *j)
{
	unsigned char *buf;
	ssize_t got;
	int status;

	j->known = input_size();
	j->walker = mr_onnx_new(j->known);
	j->out.fd = -1;
	buf = mr_malloc(MR_BUF);
	got = mr_read(STDIN_FILENO, buf, MR_BUF);
	if (got == -1) {
		warn("standard input");
		status = MR_UNFIT;
	} else {
		status = judge(j, buf, (size_t)got);
	}
	if (status == MR_OK)
		status = begin(j);
	if (status == MR_OK)
		status = transfer(j, buf, (size_t)got);
	if (status == MR_OK)
		status = publish(j);
	free(buf);
	mr_out_abort(&j->out);
	mr_onnx_free(j->walker);
	return status;
}

int
main(int argc, char *argv[])
{
	struct job j = { .want = UINT64_MAX };
	int c;

	while ((c = getopt(argc, argv, "d:ho:Vz:")) != -1)
		switch (c) {
		case 'd':
			if (!mr_oid_ok(optarg))
				errx(MR_UNFIT, "%s: not a sha256, wanted 64"
				    " lower-case hex digits", optarg);
			j.digest = optarg;
			break;
		case 'o':
			j.path = optarg;
			break;
		case 'z':
			if (mr_number(optarg, INT64_MAX, &j.want) == -1)
				errx(MR_UNFIT, "%s: not a size, wanted a"
				    " number of bytes", optarg);
			break;
		case 'h':
			puts(usage_line);
			return mr_finish(MR_OK);
		case 'V':
			return mr_version();
		default:
			goto bad;
		}
	if (j.path == NULL || j.path[0] == '\0' || argc != optind)
		goto bad;
	return mr_finish(stage(&j));
bad:
	fprintf(stderr, "%s\n", usage_line);
	return mr_finish(MR_UNFIT);
}
