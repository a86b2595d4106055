/* Runs an artifact as a car would, and writes down what it found. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

/* the driver, on the car's own file where there is one */
static int
drive(const struct job *j, const struct place *p, const struct switched *s,
    const char *artifact, const char *result)
{
	const char *argv[16];
	char *script, *what;
	size_t n = 0;
	int status;

	script = mr_fmt("%s/validate_modeld.py", p->drivers);
	what = mr_fmt("%s: the validation", j->id);
	argv[n++] = p->python;
	argv[n++] = script;
	argv[n++] = "--id";
	argv[n++] = j->id;
	argv[n++] = "--behavior-version";
	argv[n++] = j->version;
	argv[n++] = "--result";
	argv[n++] = result;
	if (s->on) {
		argv[n++] = "--params";
		argv[n++] = s->params;
	}
	if (p->starpilot)
		argv[n++] = "--unpinned";
	argv[n++] = "--";
	argv[n++] = s->on ? s->installed : artifact;
	argv[n] = NULL;
	status = backend_run(argv, p, strcmp(j->format, "supercombo") == 0,
	    what);
	free(what);
	free(script);
	return status;
}

/* with the car's choice switched to this model meanwhile */
static int
switched(const struct job *j, const struct place *p, const char *artifact,
    const char *result)
{
	struct switched s;
	struct mr_err e;
	int status = MR_OK;

	memset(&s, 0, sizeof(s));
	s.lock = -1;
	backend_catch();
	if (p->root != NULL)
		status = switch_to(&s, p->root, artifact, j, &e);
	if (status != MR_OK)
		warnx("%s: %s", j->id, e.text);
	else
		status = drive(j, p, &s, artifact, result);
	if (switch_back(&s, &e) == -1) {
		warnx("%s: %s", j->id, e.text);
		status = MR_UNFIT;
	}
	backend_end();
	return status;
}

/* the same, with a RESULT that is this run's */
static int
fresh(const char *result, const struct job *j, const struct place *p,
    const char *artifact)
{
	int status;

	if (unlink(result) == -1 && errno != ENOENT) {
		warn("%s", result);
		return MR_UNFIT;
	}
	status = switched(j, p, artifact, result);
	if (status <= MR_NO && access(result, F_OK) == -1) {
		warn("%s", result);
		return MR_UNFIT;
	}
	return status;
}

int
validate(const struct job *j, const char *file, const char *argv0)
{
	struct place p;
	struct mr_err e;
	char *artifact, *out = NULL, *result;
	int status = MR_UNFIT;

	if ((artifact = realpath(file, NULL)) == NULL) {
		warn("%s", file);
		return MR_NO;
	}
	if (place_find(&p, argv0, &e) == -1 || mr_mkdirs(j->out, &e) == -1) {
		warnx("%s", e.text);
	} else if (p.drivers == NULL) {
		warnx("validate_modeld.py: %s/device has none", MR_LIBEXEC);
	} else if ((out = realpath(j->out, NULL)) == NULL) {
		warn("%s", j->out);
	} else {
		result = mr_fmt("%s/%s_validation.json", out, j->id);
		printf("Validating %s from %s\n", j->id, artifact);
		status = fresh(result, j, &p, artifact);
		if (status == MR_OK)
			printf("  passed: %s\n", result);
		free(result);
	}
	place_free(&p);
	free(artifact);
	free(out);
	return status;
}
