/* An artifact that is tried on a device: when that is done, and its record. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "remote-compile.h"

/* the value of the line NAME of what the artifact was made from, or "" */
static const char *
made_from(struct mr_json record, const char *name)
{
	struct mr_json lines = mr_json_get(record, "key_lines");
	const char *line;
	size_t i, n = strlen(name);

	for (i = 0; i < mr_json_len(lines); i++) {
		line = mr_json_text(mr_json_at(lines, i));
		if (line != NULL && strncmp(line, name, n) == 0 &&
		    line[n] == '=')
			return line + n + 1;
	}
	return "";
}

int
trial_load(struct mr_json *source)
{
	struct mr_err e;
	struct stat st;
	char *path, *product;
	int status = MR_NO;

	path = mr_fmt("%s/%s_artifact.json", o.results, o.id);
	if (mr_json_load(source, path, &e) == -1) {
		warnx("%s: make compiled/%s.pkl makes it", e.text, o.id);
		free(path);
		return MR_NO;
	}
	product = mr_fmt("compiled/%s.pkl", o.id);
	o.version = made_from(*source, "version");
	o.format = made_from(*source, "format");
	o.gpu = strcmp(made_from(*source, "gpu"), "1") == 0;
	if (!mr_oid_ok(mr_json_str(*source, "sha256", "")) ||
	    !mr_version_ok(o.version) ||
	    (o.format[0] != '\0' && !mr_format_ok(o.format)))
		warnx("%s: wanted a sha256, a version and a format", path);
	else if (stat(product, &st) == -1)
		warnx("%s: %s: make compiled/%s.pkl makes it", product,
		    strerror(errno), o.id);
	else if (st.st_size != mr_json_int(*source, "size", -1))
		warnx("%s: %lld bytes, its record says %lld", product,
		    (long long)st.st_size,
		    (long long)mr_json_int(*source, "size", -1));
	else
		status = MR_OK;
	if (status != MR_OK)
		mr_json_free(*source);
	free(product);
	free(path);
	return status;
}

void
trial_key(struct work *w)
{
	mr_key_init(&w->k);
	mr_key_add(&w->k, "validate", mr_json_str(w->source, "sha256", ""));
	mr_key_add(&w->k, "version", o.version);
	mr_key_add(&w->k, "compiler", w->device.text);
	mr_key_digest(&w->k, w->key);
	w->record = mr_fmt("%s/%s_validation.json", o.results, o.id);
	w->product = mr_fmt("compiled/%s.pkl", o.id);
}

int
trial_current(const struct work *w)
{
	struct mr_json rec;
	struct mr_err e;
	int yes;

	if (o.force || mr_json_load(&rec, w->record, &e) == -1)
		return 0;
	yes = strcmp(mr_json_str(rec, "status", ""), "passed") == 0 &&
	    strcmp(mr_json_str(rec, "sha256", ""),
	    mr_json_str(w->source, "sha256", "?")) == 0 &&
	    strcmp(mr_json_str(rec, "toolchain", ""),
	    mr_json_str(w->identity, "toolchain", "?")) == 0;
	mr_json_free(rec);
	return yes;
}

char *
trial_artifact(void)
{
	return mr_fmt("%s_driving_tinygrad.pkl", o.id);
}

char *
trial_result(void)
{
	return mr_fmt("%s_validation.json", o.id);
}

int
trial_spoiled(const struct work *w, const char *hex)
{
	warnx("%s: sha256 is %s, its record says %s: make compiled/%s.pkl",
	    w->product, hex, mr_json_str(w->source, "sha256", ""), o.id);
	return MR_NO;
}

/* Is it a result, of this model and artifact? */
static int
is_result(const struct work *w, struct mr_json j, struct mr_err *e)
{
	const char *status = mr_json_str(j, "status", "");
	const char *want = mr_json_str(w->source, "sha256", "?");

	if (strcmp(mr_json_str(j, "id", ""), o.id) != 0 ||
	    (strcmp(status, "passed") != 0 && strcmp(status, "failed") != 0))
		return mr_fail(e, "the result has no id and status that fit");
	if (strcmp(mr_json_str(j, "sha256", ""), want) != 0)
		return mr_fail(e, "the result is of the artifact %.64s, "
		    "wanted %s", mr_json_str(j, "sha256", ""), want);
	return 0;
}

int
trial_land(const struct work *w, const char *text, struct mr_err *e)
{
	static const char *const who[] = {
		"toolchain", "tinygrad", "backend", "device"
	};
	struct mr_json j;
	size_t i;
	int status = MR_OK;

	if (mr_json_parse(&j, text, strlen(text), e) == -1)
		return MR_UNFIT;
	for (i = 0; i < sizeof(who) / sizeof(who[0]); i++)
		mr_json_set_str(&j, who[i],
		    mr_json_str(w->identity, who[i], ""));
	if (is_result(w, j, e) == -1 || mr_json_save(j, w->record, e) == -1)
		status = MR_UNFIT;
	else if (strcmp(mr_json_str(j, "status", ""), "failed") == 0)
		status = MR_NO;
	if (status == MR_NO) {
		mr_fail(e, "the validation failed: %s",
		    mr_json_str(j, "error", "it does not say why"));
		mr_one_line(e->text);
	}
	mr_json_free(j);
	return status;
}
