/* Sources get their final names; the record is written last. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source-fetch.h"

char *
staged(const char *component)
{
	return mr_fmt("onnx/%s/%s_%s.onnx", o.id, o.id, component);
}

/* joins a component's chunks into one file; S is the first of N */
static void
join(struct source *s, size_t n)
{
	char *path, *buf;
	ssize_t got;
	size_t i;
	int in, out;

	path = mr_fmt("%s/%s.joined", o.tmp, s->component);
	out = must_open(path, O_WRONLY | O_CREAT | O_TRUNC);
	buf = mr_malloc(MR_BUF);
	for (i = 0; i < n; i++) {
		in = must_open(s[i].object, O_RDONLY);
		while ((got = mr_read(in, buf, MR_BUF)) > 0)
			if (mr_write(out, buf, (size_t)got) == -1)
				err(MR_UNFIT, "%s", path);
		if (got == -1)
			err(MR_UNFIT, "%s", s[i].object);
		close(in);
	}
	if (close(out) == -1)
		err(MR_UNFIT, "%s", path);
	free(buf);
	s->object = path;
	s->oid[0] = s->size[0] = '\0';
}

/* the record's member for one staged component, from what onnx-stage says */
static void
add_member(const struct source *s, const char *path, const char *said,
    struct mr_json *files)
{
	struct mr_json rec, f;
	struct mr_err e;
	int64_t size;

	if (mr_json_load(&rec, said, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	size = mr_json_int(rec, "size", -1);
	if (size < 0 || !mr_oid_ok(mr_json_str(rec, "sha256", "")))
		errx(MR_UNFIT, "%s: %s: onnx-stage said neither size nor "
		    "sha256", o.id, s->path);
	f = mr_json_object();
	mr_json_set_str(&f, "component", s->component);
	mr_json_set_str(&f, "git_path", s->path);
	mr_json_set_str(&f, "path", path);
	mr_json_set_int(&f, "size", (uint64_t)size);
	mr_json_set_str(&f, "sha256", mr_json_str(rec, "sha256", ""));
	mr_json_push(files, f);
	mr_json_free(rec);
}

/* checks one component and gives it its final name */
static int
stage(const struct source *s, struct mr_json *files)
{
	struct words v = { .n = 0 };
	char *out, *path;
	int status;

	path = staged(s->component);
	out = mr_fmt("%s/%s.json", o.tmp, s->component);
	word(&v, "onnx-stage");
	if (s->oid[0] != '\0') {
		word(&v, "-d");
		word(&v, s->oid);
		word(&v, "-z");
		word(&v, s->size);
	}
	word(&v, "-o");
	word(&v, path);
	status = run(&v, s->object, out);
	if (status == MR_OK)
		add_member(s, path, out, files);
	free(path);
	free(out);
	return status;
}

/* does the list of record members have this staged name? */
static int
listed(struct mr_json files, const char *name)
{
	const char *path;
	size_t i, folder;

	folder = strlen("onnx/") + strlen(o.id) + 1;
	for (i = 0; i < mr_json_len(files); i++) {
		path = mr_json_str(mr_json_at(files, i), "path", "");
		if (strlen(path) > folder && strcmp(path + folder, name) == 0)
			return 1;
	}
	return 0;
}

/* Is NAME a staged source of this id, or what a killed run left of one? */
static int
is_ours(const char *name)
{
	size_t n, id;
	const char *end;

	end = name[0] == '.' ? ".onnx.tmp" : ".onnx";
	name += name[0] == '.';
	n = strlen(name);
	id = strlen(o.id);
	return n > id + strlen(end) && strncmp(name, o.id, id) == 0 &&
	    name[id] == '_' && strcmp(name + n - strlen(end), end) == 0;
}

/* removes components of an older ref: a compiler would take them up */
static void
tidy(struct mr_json files)
{
	struct dirent *d;
	char *dir, *path;
	DIR *h;

	dir = mr_fmt("onnx/%s", o.id);
	h = opendir(dir);
	while (h != NULL && (d = readdir(h)) != NULL) {
		if (!is_ours(d->d_name) || listed(files, d->d_name))
			continue;
		path = mr_fmt("%s/%s", dir, d->d_name);
		if (unlink(path) == -1)
			err(MR_UNFIT, "%s", path);
		free(path);
	}
	if (h != NULL)
		closedir(h);
	free(dir);
}

/* removes the record before what it tells of, also on the disk */
static void
remove_record(const char *path)
{
	if (unlink(path) == -1 && errno != ENOENT)
		err(MR_UNFIT, "%s", path);
	if (mr_sync_dir(path) == -1)
		err(MR_UNFIT, "%s: fsync of its folder", path);
}

static int
write_record(const char *path, struct mr_json files)
{
	struct mr_json rec;
	struct mr_key k;
	struct mr_err e;
	int rc;

	rec = mr_json_object();
	mr_json_set_str(&rec, "id", o.id);
	mr_json_set_str(&rec, "ref", o.ref);
	mr_json_set_str(&rec, "input_format", o.format);
	mr_json_set_bool(&rec, "uses_external_gpu", o.gpu);
	mr_json_set(&rec, "files", mr_json_copy(files));
	mr_key_fetch(&k, o.format, o.gpu, o.ref);
	mr_key_record(&k, &rec, "");
	mr_key_free(&k);
	rc = mr_json_save(rec, path, &e);
	if (rc == -1)
		warnx("%s", e.text);
	mr_json_free(rec);
	return rc == 0 ? MR_OK : MR_UNFIT;
}

int
stage_all(struct source *s, size_t n)
{
	struct mr_json files;
	struct mr_err e;
	char *path, *dir;
	size_t i, many;
	int status = MR_OK;

	dir = mr_fmt("onnx/%s", o.id);
	if (mr_mkdirs(dir, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	path = mr_fmt("%s/%s_source.json", o.results, o.id);
	remove_record(path);
	files = mr_json_array();
	for (i = 0; status == MR_OK && i < n; i += many) {
		for (many = 1; i + many < n && strcmp(s[i].component,
		    s[i + many].component) == 0; many++)
			;
		if (many > 1)
			join(&s[i], many);
		status = stage(&s[i], &files);
	}
	if (status == MR_OK) {
		tidy(files);
		status = write_record(path, files);
	}
	rmdir(dir);	/* where nothing came it is empty */
	mr_json_free(files);
	free(path);
	free(dir);
	return status;
}
