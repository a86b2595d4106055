/* The plan carried out into another folder; the files themselves stay. */
#include <sys/ioctl.h>
#include <sys/stat.h>
#ifdef __linux__
#include <linux/fs.h>
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ns-rename.h"

/* Makes OUT, which may be there if it is empty. */
static int
open_out(const char *out, struct mr_err *e)
{
	struct dirent *d;
	DIR *f;
	int rc = 0;

	if (mr_mkdirs(out, e) == -1)
		return -1;
	f = opendir(out);
	if (f == NULL)
		return mr_fail(e, "%s: %s", out, strerror(errno));
	while (rc == 0 && (d = readdir(f)) != NULL)
		if (strcmp(d->d_name, ".") != 0 &&
		    strcmp(d->d_name, "..") != 0)
			rc = mr_fail(e, "%s: has %s in it, wanted an empty "
			    "folder", out, d->d_name);
	closedir(f);
	return rc;
}

/* A new file that shares FROM's blocks, as btrfs, XFS and others can. */
static int
reflink(const char *from, const char *to)
{
	int rc = -1;
#ifdef FICLONE
	int in, out;

	in = open(from, O_RDONLY | O_CLOEXEC);
	out = in != -1 ? open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0666) : -1;
	if (out != -1) {
		rc = ioctl(out, FICLONE, in);
		if (rc == 0)
			rc = mr_sync(out);
		close(out);
		if (rc == -1)
			unlink(to);
	}
	if (in != -1)
		close(in);
#else
	(void)from;
	(void)to;
#endif
	return rc;
}

static int
copy(const char *from, const char *to, struct mr_err *e)
{
	struct mr_out out;
	ssize_t got;
	char *buf;
	int in;

	in = open(from, O_RDONLY | O_CLOEXEC);
	if (in == -1)
		return mr_fail(e, "%s: %s", from, strerror(errno));
	if (mr_out_open(&out, to, e) == -1) {
		close(in);
		return -1;
	}
	buf = mr_malloc(MR_BUF);
	while ((got = mr_read(in, buf, MR_BUF)) > 0)
		if (mr_write(out.fd, buf, (size_t)got) == -1)
			break;
	if (got != 0)
		mr_fail(e, "%s to %s: %s", from, out.tmp, strerror(errno));
	free(buf);
	close(in);
	if (got == 0)
		return mr_out_commit(&out, e);
	mr_out_abort(&out);
	return -1;
}

/* bytes of all files of the plan */
static uint64_t
total(const struct plan *p, const char *dir)
{
	uint64_t sum = 0;
	struct stat st;
	char *path;
	size_t i;

	for (i = 0; i < p->nfiles; i++) {
		path = mr_fmt("%s/%s", dir, p->file[i].from);
		if (stat(path, &st) == 0)
			sum += (uint64_t)st.st_size;
		free(path);
	}
	return sum;
}

/* Places one file. *COPIES says that this disk can only copy: for the first
 * such file the space is asked for. */
static int
place(const struct plan *p, const struct file *f, const char *dir,
    const char *out, int *copies, struct mr_err *e)
{
	char *from, *to, *text;
	uint64_t space, wanted;
	int rc = 0;

	if (scan_marker(f->from)) {
		text = text_marker(dir, f->from, f->to, e);
		rc = text != NULL ? text_put(out, f->to, text, e) : -1;
		free(text);
		return rc;
	}
	from = mr_fmt("%s/%s", dir, f->from);
	to = mr_fmt("%s/%s", out, f->to);
	if (*copies || (reflink(from, to) == -1 && link(from, to) == -1)) {
		wanted = *copies ? 0 : total(p, dir);
		*copies = 1;
		if (wanted > 0 && mr_space(out, &space) == 0 &&
		    space < wanted)
			rc = mr_fail(e, "%s: %llu bytes are free, wanted %llu",
			    out, (unsigned long long)space,
			    (unsigned long long)wanted);
		else
			rc = copy(from, to, e);
	}
	free(from);
	free(to);
	return rc;
}

/* multipart.json of what came along */
static int
put_multipart(const struct plan *p, const char *dir, const char *out,
    struct mr_err *e)
{
	char *text;
	int rc;

	text = text_multipart(dir, p, 1, e);
	if (text == NULL && e->text[0] != '\0')
		return -1;
	rc = text_put(out, "multipart.json", text != NULL ? text : "[]\n", e);
	free(text);
	return rc;
}

int
into(const struct plan *p, const char *dir, const char *out,
    const char *manifest, struct mr_err *e)
{
	int copies = 0, rc;
	char *name, *inside;
	size_t i;

	rc = open_out(out, e);
	for (i = 0; rc == 0 && i < p->nfiles; i++)
		rc = place(p, &p->file[i], dir, out, &copies, e);
	if (rc == 0)
		rc = put_multipart(p, dir, out, e);
	if (rc == 0) {
		name = mr_fmt("model_names_%s.json", p->version);
		rc = text_put(out, name, manifest, e);
		free(name);
	}
	if (rc == 0) {
		inside = mr_fmt("%s/.", out);
		if (mr_sync_dir(inside) == -1)
			rc = mr_fail(e, "%s: fsync: %s", out, strerror(errno));
		free(inside);
	}
	return rc;
}
