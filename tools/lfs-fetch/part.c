/* The part under way: STORE/incomplete/OID.part, locked by its process, or a
 * file of its own where there is no store. */
#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lfs-fetch.h"

/* bytes of a write to a part; of eight at once each has less */
static size_t
gather(void)
{
	return run.n > 1 ? 16 << 10 : 256 << 10;
}

/* 1: FD is locked and PATH still names it; 0: another has it; -1: errno */
static int
mine(int fd, const char *path)
{
	struct stat a, b;

	if (flock(fd, LOCK_EX | LOCK_NB) == -1 && errno != ENOLCK &&
	    errno != ENOTSUP)
		return errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
	if (fstat(fd, &a) == -1)
		return -1;
	if (stat(path, &b) == -1)
		return errno == ENOENT ? 0 : -1;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* hands the filled buffer to the hash; the other is there to be filled */
static char *
swap(struct part *p, size_t n)
{
	char *full = p->buf[0];

	hasher_add(p->hash, full, n);
	p->buf[0] = p->buf[1];
	p->buf[1] = full;
	return full;
}

/* makes ready for bytes */
static void
start(struct part *p)
{
	p->hash = hasher_new();
	p->have = p->begun = p->nbuf = 0;
	if (p->buf[0] == NULL) {
		p->buf[0] = mr_malloc(gather());
		p->buf[1] = mr_malloc(gather());
	}
}

/* hashes what an earlier run left in the part */
static int
take_up(struct part *p, const struct object *o)
{
	struct stat st;
	ssize_t got;

	start(p);
	if (fstat(p->fd, &st) == -1)
		return -1;
	if (st.st_size > 0 && (uint64_t)st.st_size > o->size)
		return ftruncate(p->fd, 0);
	while ((got = mr_read(p->fd, p->buf[0], gather())) > 0) {
		swap(p, (size_t)got);
		p->have += (uint64_t)got;
	}
	p->begun = p->have;
	return got == -1 ? -1 : 0;
}

const char *
temporary(void)
{
	const char *dir;

	dir = getenv("TMPDIR");
	return dir != NULL && *dir != '\0' ? dir : "/tmp";
}

/* a file to hold an object when there is no store */
static int
open_apart(struct object *o, struct mr_err *e)
{
	char *name;

	if (o->path != NULL) {
		if (mr_out_open(&o->part.out, o->path, e) == -1)
			return -1;
		o->part.fd = o->part.out.fd;
		return 0;
	}
	name = mr_fmt("%s/lfs-fetch.XXXXXX", temporary());
	o->part.fd = mkstemp(name);
	if (o->part.fd == -1)
		mr_fail(e, "%s: %s", name, strerror(errno));
	else
		unlink(name);
	free(name);
	return o->part.fd == -1 ? -1 : 0;
}

int
part_open(struct object *o, struct mr_err *e)
{
	struct part *p = &o->part;
	char *dir;
	int rc;

	if (p->fd != -1)
		return 1;
	if (set.nstores == 0) {
		if (open_apart(o, e) == -1)
			return -1;
		start(p);
		return 1;
	}
	dir = mr_fmt("%s/incomplete", set.store[0]);
	rc = mr_mkdirs(dir, e);
	free(dir);
	if (rc == -1)
		return -1;
	p->path = incomplete(o->oid, "part");
	p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	rc = p->fd == -1 ? -1 : mine(p->fd, p->path);
	if (rc == 1 && take_up(p, o) == -1)
		rc = -1;
	if (rc == -1)
		mr_fail(e, "%s: %s", p->path, strerror(errno));
	if (rc != 1)
		part_close(o);
	return rc;
}

/* writes out what part_write has gathered, while it is hashed */
static int
flush(struct part *p)
{
	size_t n = p->nbuf;

	p->nbuf = 0;
	return n > 0 ? mr_write(p->fd, swap(p, n), n) : 0;
}

/* libcurl hands out 16 KiB at a time: a system call for each is dear */
int
part_write(struct object *o, const char *buf, size_t n)
{
	struct part *p = &o->part;
	size_t k, max = gather();

	for (; n > 0; buf += k, n -= k) {
		k = max - p->nbuf < n ? max - p->nbuf : n;
		memcpy(p->buf[0] + p->nbuf, buf, k);
		p->nbuf += k;
		p->have += k;
		if (p->nbuf == max && flush(p) == -1)
			return -1;
	}
	return 0;
}

int
part_reset(struct object *o)
{
	struct part *p = &o->part;

	if (p->hash != NULL)
		hasher_end(p->hash, NULL);
	start(p);
	if (lseek(p->fd, 0, SEEK_SET) == -1)
		return -1;
	return ftruncate(p->fd, 0);
}

int
part_holds(struct object *o, char hex[MR_HEX])
{
	int rc;

	rc = flush(&o->part);
	hasher_end(o->part.hash, hex);
	o->part.hash = NULL;
	if (rc == -1)
		return -1;
	return o->part.have == o->size && strcmp(hex, o->oid) == 0;
}

/* gives the part its name in the store */
static int
publish(struct object *o, struct mr_err *e)
{
	char *path, *slash;
	int rc = -1;

	path = stored(set.store[0], o->oid);
	slash = strrchr(path, '/');
	*slash = '\0';
	if (mr_mkdirs(path, e) == 0) {
		*slash = '/';
		if (mine(o->part.fd, o->part.path) != 1)
			mr_fail(e, "%s: another program took it away",
			    o->part.path);
		else if (mr_sync(o->part.fd) == -1 ||
		    rename(o->part.path, path) == -1 ||
		    mr_sync_dir(path) == -1)
			mr_fail(e, "%s: %s", path, strerror(errno));
		else {
			/* another process may use the name from now on */
			free(o->part.path);
			o->part.path = NULL;
			rc = 0;
		}
	}
	free(path);
	return rc;
}

int
part_commit(struct object *o, struct mr_err *e)
{
	int rc;

	if (set.nstores == 0 && o->path != NULL) {
		rc = mr_out_commit(&o->part.out, e);
		o->part.fd = -1;
	} else {
		rc = set.nstores == 0 ? 0 : publish(o, e);
		if (rc == 0 && lseek(o->part.fd, 0, SEEK_SET) == -1)
			rc = mr_fail(e, "%s: %s", o->oid, strerror(errno));
		if (rc == 0)
			rc = deliver(o, o->part.fd, e);
	}
	part_close(o);
	return rc;
}

char *
part_bad(struct object *o)
{
	char *bad = NULL;

	if (o->part.path != NULL)
		bad = aside(o->part.path, o->oid);
	else if (o->part.out.tmp != NULL) {
		bad = mr_fmt("%s.bad", o->path);
		if (rename(o->part.out.tmp, bad) == -1) {
			free(bad);
			bad = NULL;
		}
	}
	part_close(o);
	return bad;
}

void
part_close(struct object *o)
{
	struct part *p = &o->part;

	if (p->hash != NULL) {
		(void)flush(p);	/* lost bytes only come again */
		hasher_end(p->hash, NULL);
	}
	free(p->buf[0]);
	free(p->buf[1]);
	p->buf[0] = p->buf[1] = NULL;
	/* an empty part is litter; under the lock, so nobody else's */
	if (p->hash != NULL && p->path != NULL && p->have == 0)
		unlink(p->path);
	p->hash = NULL;
	if (p->out.tmp != NULL)
		mr_out_abort(&p->out);
	else if (p->fd != -1)
		close(p->fd);
	p->fd = -1;
	free(p->path);
	p->path = NULL;
	p->have = p->begun = 0;
}

uint64_t
left_over(const struct object *o)
{
	struct stat st;
	char *path;
	int rc;

	if (set.nstores == 0)
		return 0;
	path = incomplete(o->oid, "part");
	rc = stat(path, &st);
	free(path);
	return rc == 0 && (uint64_t)st.st_size <= o->size ?
	    (uint64_t)st.st_size : 0;
}

int
part_whole(struct object *o, struct mr_err *e)
{
	char hex[MR_HEX];
	int rc;

	if (left_over(o) != o->size)
		return 0;
	rc = part_open(o, e);
	if (rc != 1)
		return rc;
	if (part_holds(o, hex) == 1)
		return part_commit(o, e) == -1 ? -1 : 1;
	/* what an earlier run left is wrong: nobody knows who spoiled it */
	rc = part_reset(o) == -1 ? mr_fail(e, "%s: %s", o->part.path,
	    strerror(errno)) : 0;
	part_close(o);
	return rc;
}
