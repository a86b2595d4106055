/* The product and its record: when it is current, and how it lands. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

int
work_identity(struct work *w, const char *text, const char *who)
{
	struct mr_err e;

	if (mr_json_parse(&w->identity, text, strlen(text), &e) == -1) {
		warnx("%s: %s", who, e.text);
		return MR_UNFIT;
	}
	if (mr_key_device(&w->device, w->identity) == 0)
		return MR_OK;
	warnx("%s: wanted an object that names a toolchain", who);
	mr_key_free(&w->device);
	mr_json_free(w->identity);
	return MR_UNFIT;
}

void
work_key(struct work *w)
{
	mr_key_compile(&w->k, o.format, o.version, o.gpu, w->source,
	    &w->device);
	mr_key_digest(&w->k, w->key);
	w->record = mr_fmt("%s/%s_artifact.json", o.results, o.id);
	w->product = mr_fmt("compiled/%s.pkl", o.id);
}

int
work_current(const struct work *w)
{
	struct mr_json rec;
	struct mr_err e;
	struct stat st;
	int yes;

	if (o.force || mr_json_load(&rec, w->record, &e) == -1)
		return 0;
	yes = strcmp(mr_json_str(rec, "key", ""), w->key) == 0 &&
	    stat(w->product, &st) == 0 && S_ISREG(st.st_mode) &&
	    (int64_t)st.st_size == mr_json_int(rec, "size", -2);
	mr_json_free(rec);
	return yes;
}

int
land_begin(const struct work *w)
{
	struct mr_err e;

	if (mr_mkdirs("compiled", &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	if ((unlink(w->record) == -1 && errno != ENOENT) ||
	    mr_sync_dir(w->record) == -1) {
		warn("%s", w->record);
		return MR_UNFIT;
	}
	return MR_OK;
}

int
land_end(const struct work *w, const char *hex, uint64_t size)
{
	static const char *const who[] = {
		"toolchain", "tinygrad", "backend", "device", "driver"
	};
	struct mr_json rec;
	struct mr_err e;
	size_t i;
	int status = MR_OK;

	rec = mr_json_object();
	mr_json_set_str(&rec, "id", o.id);
	mr_json_set_str(&rec, "status", "compiled");
	mr_json_set_str(&rec, "path", w->product);
	mr_json_set_int(&rec, "size", size);
	mr_json_set_str(&rec, "sha256", hex);
	mr_json_set_bool(&rec, "multipart", 0);	/* pkl-split knows */
	for (i = 0; i < sizeof(who) / sizeof(who[0]); i++)
		mr_json_set_str(&rec, who[i],
		    mr_json_str(w->identity, who[i], ""));
	mr_key_record(&w->k, &rec, "");
	if (mr_json_save(rec, w->record, &e) == -1) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	mr_json_free(rec);
	return status;
}
