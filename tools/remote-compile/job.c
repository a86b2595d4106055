/* The compile in its key's own folder; the output gets its name and record. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

/* removes all that is in a job's folder: no old output is ever collected */
static void
clear_folder(const char *dir)
{
	struct dirent *d;
	char *path;
	DIR *h;

	h = opendir(dir);
	while (h != NULL && (d = readdir(h)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 ||
		    strcmp(d->d_name, "..") == 0)
			continue;
		path = mr_fmt("%s/%s", dir, d->d_name);
		if (unlink(path) == -1 && errno != ENOENT) {
			clear_folder(path);	/* a folder */
			rmdir(path);
		}
		free(path);
	}
	if (h != NULL)
		closedir(h);
}

/* the members of the artifact record */
static struct mr_json
artifact_record(const char *product, const char *hex, uint64_t size,
    const struct mr_key *k, struct mr_json identity)
{
	static const char *const who[] = {
		"toolchain", "tinygrad", "backend", "device", "driver"
	};
	struct mr_json rec;
	size_t i;

	rec = mr_json_object();
	mr_json_set_str(&rec, "id", o.id);
	mr_json_set_str(&rec, "status", "compiled");
	mr_json_set_str(&rec, "path", product);
	mr_json_set_int(&rec, "size", size);
	mr_json_set_str(&rec, "sha256", hex);
	mr_json_set_bool(&rec, "multipart", 0);	/* pkl-split knows */
	for (i = 0; i < sizeof(who) / sizeof(who[0]); i++)
		mr_json_set_str(&rec, who[i],
		    mr_json_str(identity, who[i], ""));
	mr_key_record(k, &rec, "");
	return rec;
}

/* hashes and syncs the output, then record away, product in, record */
static int
collect(const char *output, const char *product, const char *record,
    const struct mr_key *k, struct mr_json identity)
{
	struct mr_json rec;
	struct mr_err e;
	char hex[MR_HEX];
	uint64_t size;
	int fd, status = MR_OK;

	fd = open(output, O_RDONLY | O_CLOEXEC);
	if (fd == -1) {
		warnx("%s: models ended well, yet wrote no %s", o.id, output);
		return MR_NO;
	}
	if (mr_sha256_fd(fd, hex, &size) == -1 || mr_sync(fd) == -1) {
		warn("%s", output);
		close(fd);
		return MR_UNFIT;
	}
	close(fd);
	if (size == 0) {
		warnx("%s: the artifact is empty", o.id);
		return MR_NO;
	}
	if (unlink(record) == -1 && errno != ENOENT) {
		warn("%s", record);
		return MR_UNFIT;
	}
	if (mr_mkdirs("compiled", &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	if (mr_sync_dir(record) == -1 || rename(output, product) == -1 ||
	    mr_sync_dir(product) == -1) {
		warn("%s", product);
		return MR_UNFIT;
	}
	rec = artifact_record(product, hex, size, k, identity);
	if (mr_json_save(rec, record, &e) == -1) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	mr_json_free(rec);
	return status;
}

/* is the compiler still the one of DEVICE? */
static int
same_device(const struct mr_key *device)
{
	struct mr_json identity;
	struct mr_key after;
	int same, status;

	status = local_identity(&identity, &after);
	if (status != MR_OK)
		return status;
	same = strcmp(device->text, after.text) == 0;
	mr_json_free(identity);
	mr_key_free(&after);
	if (same)
		return MR_OK;
	warnx("%s: the compiler changed during the compile: run make again",
	    o.id);
	return MR_AGAIN;
}

int
job(const char *key, const struct mr_key *k, const struct mr_key *device,
    struct mr_json identity, const char *product, const char *record)
{
	struct mr_err e;
	char *dir, *in, *output;
	int status;

	dir = mr_fmt(".state/jobs/%s", key);
	in = mr_fmt("onnx/%s", o.id);
	output = mr_fmt("%s/%s_driving_tinygrad.pkl", dir, o.id);
	if (mr_mkdirs(dir, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	clear_folder(dir);
	status = local_compile(in, dir);
	if (status == MR_OK)
		status = same_device(device);
	if (status == MR_OK)
		status = collect(output, product, record, k, identity);
	clear_folder(dir);
	rmdir(dir);
	free(output);
	free(in);
	free(dir);
	return status;
}
