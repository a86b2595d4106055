/* The staged sources, held to their record: what is compiled is hashed. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

/* is the staged file NAME that of a component in the record? */
static int
listed(struct mr_json files, const char *name)
{
	const char *component;
	size_t i, n;

	n = strlen(o.id);
	for (i = 0; i < mr_json_len(files); i++) {
		component = mr_json_str(mr_json_at(files, i), "component", "");
		if (strncmp(name, o.id, n) == 0 && name[n] == '_' &&
		    strncmp(name + n + 1, component, strlen(component)) == 0 &&
		    strcmp(name + n + 1 + strlen(component), ".onnx") == 0)
			return 1;
	}
	return 0;
}

/* refuses sources that the record does not have: the compiler takes all that
 * it finds, and the key would not tell of them */
static int
check_folder(struct mr_json files)
{
	struct dirent *d;
	int status = MR_OK;
	char *dir;
	size_t n;
	DIR *h;

	dir = mr_fmt("onnx/%s", o.id);
	h = opendir(dir);
	while (h != NULL && (d = readdir(h)) != NULL) {
		n = strlen(d->d_name);
		if (d->d_name[0] == '.' || n < 5 ||
		    strcmp(d->d_name + n - 5, ".onnx") != 0 ||
		    listed(files, d->d_name))
			continue;
		warnx("%s/%s: is not in the record of the sources: remove it",
		    dir, d->d_name);
		status = MR_NO;
	}
	if (h != NULL)
		closedir(h);
	free(dir);
	return status;
}

char *
source_path(struct mr_json f)
{
	return mr_fmt("onnx/%s/%s_%s.onnx", o.id, o.id,
	    mr_json_str(f, "component", ""));
}

/* the record goes, so that the next run fetches */
static void
fetch_again(void)
{
	char *record;

	record = mr_fmt("%s/%s_source.json", o.results, o.id);
	unlink(record);
	warnx("%s: removed: make onnx/%s fetches it again", record, o.id);
	free(record);
}

int
source_holds(struct mr_json f, const char *hex)
{
	const char *want = mr_json_str(f, "sha256", "");
	char *path;

	if (strcmp(hex, want) == 0)
		return 1;
	path = source_path(f);
	warnx("%s: sha256 is %s, its record says %.64s", path, hex, want);
	free(path);
	fetch_again();
	return 0;
}

int
hash_source(struct mr_json source)
{
	struct mr_json f, files = mr_json_get(source, "files");
	char hex[MR_HEX], *path;
	struct mr_err e;
	uint64_t size;
	size_t i;
	int got;

	for (i = 0; i < mr_json_len(files); i++) {
		f = mr_json_at(files, i);
		path = source_path(f);
		got = mr_sha256_file(path, hex, &size, &e);
		free(path);
		if (got == -1) {
			warnx("%s", e.text);
			fetch_again();
			return MR_NO;
		}
		if (!source_holds(f, hex))
			return MR_NO;
	}
	return MR_OK;
}

/* has a staged file a name that may be used, and the size in its record? */
static int
check_staged(struct mr_json f)
{
	const char *component;
	struct stat st;
	int64_t want;
	char *path;
	int status = MR_NO;

	component = mr_json_str(f, "component", "");
	if (!mr_component_ok(component)) {
		warnx("%s: its source record names \"%.40s\", wanted a "
		    "component", o.id, component);
		return MR_NO;
	}
	path = source_path(f);
	want = mr_json_int(f, "size", -1);
	if (stat(path, &st) == -1)
		warn("%s", path);
	else if ((int64_t)st.st_size != want)
		warnx("%s: %lld bytes, its record says %lld", path,
		    (long long)st.st_size, (long long)want);
	else
		status = MR_OK;
	free(path);
	return status;
}

int
load_source(struct mr_json *source)
{
	struct mr_json files;
	struct mr_err e;
	char *path;
	size_t i;
	int status = MR_OK;

	path = mr_fmt("%s/%s_source.json", o.results, o.id);
	if (mr_json_load(source, path, &e) == -1) {
		warnx("%s: make onnx/%s fetches it", e.text, o.id);
		free(path);
		return MR_NO;
	}
	files = mr_json_get(*source, "files");
	if (mr_json_type(files) != MR_JSON_ARRAY || mr_json_len(files) == 0) {
		warnx("%s: lists no files", path);
		status = MR_NO;
	}
	for (i = 0; status == MR_OK && i < mr_json_len(files); i++)
		status = check_staged(mr_json_at(files, i));
	if (status != MR_OK)
		fetch_again();
	else
		status = check_folder(files);
	if (status != MR_OK)
		mr_json_free(*source);
	free(path);
	return status;
}
