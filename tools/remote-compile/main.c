/* Staged sources -> compiled/ID.pkl and its record, on a build device. */
#include <sys/stat.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

struct opts o = { .version = "" };

static int
usage(FILE *f)
{
	fputs("usage: remote-compile [-FghNV] -D DEVICES -f FORMAT "
	    "[-v VERSION] -r RESULTS ID\n"
	    "       remote-compile -I -D DEVICES\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
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
