/* Staged sources -> compiled/ID.pkl and its record, on a build device. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

struct opts o = {
	.id = "remote-compile", .version = "", .root = "/data/openpilot",
	.allowed = "192.168.3.109", .denied = "192.168.3.110", .retries = 3,
	.pause = 2, .wait = 9000, .limit = 7200, .silence = 60
};

static int
usage(FILE *f)
{
	fputs("usage: remote-compile [-FgkN] [device options] -D DEVICES "
	    "-f FORMAT [-v VERSION]\n"
	    "                      -r RESULTS ID\n"
	    "       remote-compile -T [-Fk] [device options] -D DEVICES "
	    "-r RESULTS ID\n"
	    "       remote-compile -I | -S [device options] -D DEVICES\n"
	    "       remote-compile -C [device options] -D DEVICES ID\n"
	    "device options: [-a ALLOWED] [-d DENIED] [-c SSH_CONFIG] "
	    "[-p ROOT]\n"
	    "                [-R RETRIES] [-P SECONDS] [-w SECONDS] "
	    "[-l SECONDS] [-t SECONDS]\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
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

static unsigned
number(int option, const char *text)
{
	uint64_t n;

	if (mr_number(text, 1000000, &n) == -1)
		errx(MR_UNFIT, "-%c %.40s: wanted a number", option, text);
	return (unsigned)n;
}

/* an option of the device: how it is reached, and for how long */
static int
device_option(int c, const char *arg)
{
	switch (c) {
	case 'D':
		o.devices = arg;
		break;
	case 'P':
		o.pause = number(c, arg);
		break;
	case 'R':
		o.retries = number(c, arg);
		break;
	case 'a':
		o.allowed = arg;
		break;
	case 'c':
		o.config = arg[0] == '\0' ? NULL : arg;
		break;
	case 'd':
		o.denied = arg;
		break;
	case 'l':
		o.limit = number(c, arg);
		break;
	case 'p':
		o.root = arg;
		break;
	case 't':
		o.silence = number(c, arg);
		break;
	case 'w':
		o.wait = number(c, arg);
		break;
	default:
		return 0;
	}
	return 1;
}

/* what is asked of the devices themselves */
static int
ask(int what, int local)
{
	if (what == 'I')
		return local ? local_identity() : ask_identity_of_all();
	if (local)
		errx(MR_UNFIT, "local: its compiles end with make: there is "
		    "nothing to %s", what == 'S' ? "show" : "cancel");
	return ask_each(what == 'S' ? job_status : job_cancel);
}

int
main(int argc, char *argv[])
{
	int c, local, what = 0;

	while ((c = getopt(argc, argv, "CD:FINP:R:STVa:c:d:f:ghkl:p:r:t:v:w:"))
	    != -1)
		switch (c) {
		case 'C':
		case 'I':
		case 'S':
		case 'T':
			if (what != 0 && what != c)
				return usage(stderr);
			what = c;
			break;
		case 'F':
			o.force = 1;
			break;
		case 'N':
			o.noversion = 1;
			break;
		case 'f':
			o.format = optarg;
			break;
		case 'g':
			o.gpu = 1;
			break;
		case 'k':
			o.keep = 1;
			break;
		case 'r':
			o.results = optarg;
			break;
		case 'v':
			o.version = optarg;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			if (!device_option(c, optarg))
				return usage(stderr);
		}
	o.validate = what == 'T';
	if (o.devices == NULL || argc - optind != (what != 'I' && what !=
	    'S') || (what == 0 && o.format == NULL) ||
	    ((what == 0 || what == 'T') && o.results == NULL))
		return usage(stderr);
	if (o.root[0] != '/' || o.silence == 0)
		errx(MR_UNFIT, o.silence == 0 ? "-t 0: wanted 1 second or more"
		    : "-p %.80s: wanted an absolute path", o.root);
	local = strcmp(o.devices, "local") == 0;
	if (argc > optind)
		o.id = argv[optind];
	if (what == 0)
		check_words();
	else if (!mr_id_ok(o.id))
		errx(MR_UNFIT, "\"%.80s\": not a model id", o.id);
	o.job = o.validate ? mr_fmt("%s@validate", o.id) : o.id;
	if (what == 0 || what == 'T')
		return mr_finish(!local ? pool_compile() : what == 0 ?
		    local_compile() : local_validate());
	return mr_finish(ask(what, local));
}
