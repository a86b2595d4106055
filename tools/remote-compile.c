/* Staged sources -> compiled/ID.pkl and its record, on a build device. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

static struct {
	const char	*devices, *results, *format, *id;
	const char	*version;	/* "": the model has an empty one */
	int		 gpu, force, identity, noversion;
} o = { .version = "" };

static int
usage(FILE *f)
{
	fputs("usage: remote-compile [-FghNV] -D DEVICES -f FORMAT "
	    "[-v VERSION] -r RESULTS ID\n"
	    "       remote-compile -I -D DEVICES\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* ---- the local transport: `models` on this machine ---- */

/* a compiler's status as ours; it has said why it failed, unless a signal
 * ended it, which is no verdict on its input */
static int
status_of(int status, const char *what)
{
	if (status == -1)
		warn("%s", what);
	else if (status > 128)
		warnx("%s: killed by signal %d%s", what, status - 128,
		    status - 128 == SIGKILL ? " (out of memory?)" : "");
	else if (status > MR_UNFIT && status != MR_AGAIN)
		warnx("%s: ended with status %d", what, status);
	return status == MR_OK || status == MR_NO || status == MR_AGAIN ?
	    status : MR_UNFIT;
}

/* asks the compiler who it is: a root and a key that the caller frees */
static int
local_identity(struct mr_json *identity, struct mr_key *device)
{
	const char *argv[] = { "models", "--identity", NULL };
	struct mr_err e;
	char *text;
	int status;

	text = mr_capture(argv, MR_BUF, 60, &status);
	status = status_of(text == NULL ? -1 : status, "models --identity");
	if (status != MR_OK) {
		free(text);
		return status == MR_AGAIN ? MR_AGAIN : MR_UNFIT;
	}
	if (mr_json_parse(identity, text, strlen(text), &e) == -1) {
		warnx("models --identity: %s", e.text);
		free(text);
		return MR_UNFIT;
	}
	free(text);
	if (mr_key_device(device, *identity) == 0)
		return MR_OK;
	warnx("models --identity: wanted an object that names a toolchain");
	mr_key_free(device);
	mr_json_free(*identity);
	return MR_UNFIT;
}

/* runs the compiler; its log is our standard error */
static int
local_compile(const char *in, const char *out)
{
	const char *argv[] = { "models", "--model", o.id, "--input-dir",
	    in, "--output-dir", out, "--input-format",
	    o.format, "--no-split", NULL, NULL, NULL, NULL };
	size_t n = 10;
	char *what;
	int status;

	if (o.version[0] != '\0') {
		argv[n++] = "--version";
		argv[n++] = o.version;
	}
	if (o.gpu)
		argv[n++] = "--external-gpu";
	what = mr_fmt("%s: models", o.id);
	status = status_of(mr_run(argv, -2, STDERR_FILENO, -1, 0), what);
	free(what);
	return status;
}

/* ---- what does not depend on where the compiler runs ---- */

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

/* hashes one staged file against its member of the record */
static int
check_staged(struct mr_json f)
{
	const char *component, *want;
	char hex[MR_HEX], *path;
	struct mr_err e;
	uint64_t size;
	int status = MR_NO;

	component = mr_json_str(f, "component", "");
	want = mr_json_str(f, "sha256", "");
	if (!mr_component_ok(component)) {
		warnx("%s: its source record names \"%.40s\", wanted a "
		    "component", o.id, component);
		return MR_NO;
	}
	path = mr_fmt("onnx/%s/%s_%s.onnx", o.id, o.id, component);
	if (mr_sha256_file(path, hex, &size, &e) == -1)
		warnx("%s", e.text);
	else if (strcmp(hex, want) != 0)
		warnx("%s: sha256 is %s, its record says %.64s", path, hex,
		    want);
	else
		status = MR_OK;
	free(path);
	return status;
}

/* loads the source record and hashes the staged bytes against it */
static int
load_source(struct mr_json *source, const char *path)
{
	struct mr_json files;
	struct mr_err e;
	size_t i;
	int status = MR_OK;

	if (mr_json_load(source, path, &e) == -1) {
		warnx("%s: make onnx/%s fetches it", e.text, o.id);
		return MR_NO;
	}
	files = mr_json_get(*source, "files");
	if (mr_json_type(files) != MR_JSON_ARRAY || mr_json_len(files) == 0) {
		warnx("%s: lists no files", path);
		status = MR_NO;
	}
	for (i = 0; status == MR_OK && i < mr_json_len(files); i++)
		status = check_staged(mr_json_at(files, i));
	if (status != MR_OK) {
		unlink(path);	/* so that the next run fetches */
		warnx("%s: removed: make onnx/%s fetches it again", path,
		    o.id);
	} else {
		status = check_folder(files);
	}
	if (status != MR_OK)
		mr_json_free(*source);
	return status;
}

/* the bytes of a regular file, -1 if there is none */
static int64_t
size_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) == -1 || !S_ISREG(st.st_mode))
		return -1;
	return (int64_t)st.st_size;
}

/* is the product of this key here already? */
static int
current(const char *record, const char *product, const char *key)
{
	struct mr_json rec;
	struct mr_err e;
	int yes;

	if (mr_json_load(&rec, record, &e) == -1)
		return 0;
	yes = strcmp(mr_json_str(rec, "key", ""), key) == 0 &&
	    size_of(product) == mr_json_int(rec, "size", -2);
	mr_json_free(rec);
	return yes;
}

/* removes the files in a job's folder: no old output is ever collected */
static void
clear_folder(const char *dir)
{
	struct dirent *d;
	char *path;
	DIR *h;

	h = opendir(dir);
	while (h != NULL && (d = readdir(h)) != NULL) {
		path = mr_fmt("%s/%s", dir, d->d_name);
		unlink(path);	/* "." and ".." refuse */
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

/* the compile under its key's own folder */
static int
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

static int
compile(void)
{
	struct mr_json source, identity;
	struct mr_key k, device;
	char key[MR_HEX], *path, *record, *product;
	int status;

	path = mr_fmt("%s/%s_source.json", o.results, o.id);
	status = load_source(&source, path);
	free(path);
	if (status != MR_OK)
		return status;
	status = local_identity(&identity, &device);
	if (status != MR_OK) {
		mr_json_free(source);
		return status;
	}
	mr_key_compile(&k, o.format, o.version, o.gpu, source, &device);
	mr_key_digest(&k, key);
	record = mr_fmt("%s/%s_artifact.json", o.results, o.id);
	product = mr_fmt("compiled/%s.pkl", o.id);
	if (!o.force && current(record, product, key))
		puts("current");
	else
		status = job(key, &k, &device, identity, product, record);
	free(product);
	free(record);
	mr_key_free(&k);
	mr_key_free(&device);
	mr_json_free(identity);
	mr_json_free(source);
	return status;
}

/* prints the identity on one line */
static int
print_identity(void)
{
	struct mr_json identity;
	struct mr_key device;
	char *text;
	int status;

	status = local_identity(&identity, &device);
	if (status != MR_OK)
		return status;
	text = mr_json_dump(identity, 0);
	puts(text);
	free(text);
	mr_key_free(&device);
	mr_json_free(identity);
	return MR_OK;
}

/* refuses what would be misread further on, by name */
static void
check_words(void)
{
	if (!mr_id_ok(o.id))
		errx(MR_UNFIT, "\"%.80s\": not a model id", o.id);
	if (!mr_version_ok(o.version))
		errx(MR_UNFIT, "%s: version is \"%.80s\", wanted v and 1 to "
		    "4 digits", o.id, o.version);
	if (!mr_format_ok(o.format))
		errx(MR_UNFIT, "%s: format is \"%.80s\", wanted split or "
		    "supercombo", o.id, o.format);
	if (o.noversion)
		errx(MR_UNFIT, "%s: no manifest has its version: add an "
		    "entry to EXTRA_MANIFEST", o.id);
}

int
main(int argc, char *argv[])
{
	int c;

	while ((c = getopt(argc, argv, "D:f:v:r:FgINhV")) != -1)
		switch (c) {
		case 'D':
			o.devices = optarg;
			break;
		case 'f':
			o.format = optarg;
			break;
		case 'v':
			o.version = optarg;
			break;
		case 'r':
			o.results = optarg;
			break;
		case 'F':
			o.force = 1;
			break;
		case 'g':
			o.gpu = 1;
			break;
		case 'I':
			o.identity = 1;
			break;
		case 'N':
			o.noversion = 1;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (o.devices == NULL)
		return usage(stderr);
	if (strcmp(o.devices, "local") != 0)
		errx(MR_UNFIT, "device \"%.80s\": this version compiles on "
		    "this machine only: set DEVICES = local", o.devices);
	if (o.identity && argc == optind)
		return mr_finish(print_identity());
	if (o.identity || argc - optind != 1 || o.format == NULL ||
	    o.results == NULL)
		return usage(stderr);
	o.id = argv[optind];
	check_words();
	return mr_finish(compile());
}
