/* A model's entry -> its ONNX sources under onnx/ID and the source record. */
#include <dirent.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source-fetch.h"

struct opts o;

static int
usage(FILE *f)
{
	fputs("usage: source-fetch [-ghV] -C REPO [-u URL] [-e ENDPOINT] ... "
	    "[-H HOST] ...\n"
	    "                    -f split|supercombo -r RESULTS ID REF\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* empties the folder for temporary files */
static void
clear_tmp(void)
{
	struct dirent *d;
	char *path;
	DIR *h;

	h = opendir(o.tmp);
	while (h != NULL && (d = readdir(h)) != NULL) {
		path = mr_fmt("%s/%s", o.tmp, d->d_name);
		if (strcmp(d->d_name, ".") != 0 &&
		    strcmp(d->d_name, "..") != 0)
			unlink(path);
		free(path);
	}
	if (h != NULL)
		closedir(h);
}

static int
fetch(void)
{
	struct source *s;
	struct mr_err e;
	size_t n;
	int status;

	o.tmp = mr_fmt(".state/fetch/%s", o.id);
	if (mr_mkdirs(o.tmp, &e) == -1 || mr_mkdirs(o.results, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	clear_tmp();
	s = mr_malloc(MAX_SOURCES * sizeof(*s));
	status = find_sources(s, &n);
	if (status == MR_OK)
		status = take_blobs(s, n);
	if (status == MR_OK)
		status = fetch_objects(s, n);
	if (status == MR_OK)
		status = stage_all(s, n);
	clear_tmp();
	rmdir(o.tmp);
	return status;	/* the process ends here: its memory goes with it */
}

int
main(int argc, char *argv[])
{
	int c;

	while ((c = getopt(argc, argv, "C:u:e:H:f:r:ghV")) != -1)
		switch (c) {
		case 'C':
			o.repo = optarg;
			break;
		case 'u':
			o.remote = optarg;
			break;
		case 'e':
			if (o.nendpoints == 32)
				errx(MR_UNFIT, "more than 32 endpoints");
			o.endpoints[o.nendpoints++] = optarg;
			break;
		case 'H':
			if (o.nhosts == 32)
				errx(MR_UNFIT, "more than 32 hosts");
			o.hosts[o.nhosts++] = optarg;
			break;
		case 'f':
			o.format = optarg;
			break;
		case 'r':
			o.results = optarg;
			break;
		case 'g':
			o.gpu = 1;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	if (argc - optind != 2 || o.repo == NULL || *o.repo == '\0' ||
	    o.format == NULL || o.results == NULL || *o.results == '\0')
		return usage(stderr);
	o.id = argv[optind];
	o.ref = argv[optind + 1];
	if (!mr_id_ok(o.id))
		errx(MR_UNFIT, "\"%.80s\": not a model id", o.id);
	if (!mr_ref_ok(o.ref))
		errx(MR_UNFIT, "%s: ref is \"%.80s\", wanted 40 hex digits",
		    o.id, o.ref);
	if (!mr_format_ok(o.format))
		errx(MR_UNFIT, "%s: format is \"%.80s\", wanted split or "
		    "supercombo", o.id, o.format);
	return mr_finish(fetch());
}
