/* What is to be built: the sources that are used, and how they are called. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"

enum { LONG_HISTORY = 99 };	/* steps: no frame is skipped */

static int
select_files(struct plan *p, const struct job *j, struct mr_err *e)
{
	char *const *f = p->files->file;
	enum component first;

	p->supercombo = strcmp(j->format, "supercombo") == 0 ||
	    (strcmp(j->format, "auto") == 0 && f[SUPERCOMBO] != NULL);
	if (p->supercombo) {
		if (f[SUPERCOMBO] == NULL)
			return mr_fail(e, "%s: no driving_supercombo is "
			    "staged, wanted for --input-format supercombo",
			    j->id);
		p->type = "supercombo";
		p->use[p->n++] = SUPERCOMBO;
		return 0;
	}
	first = f[ON_POLICY] != NULL ? ON_POLICY : POLICY;
	if (f[VISION] == NULL || f[first] == NULL)
		return mr_fail(e, "%s: no %s is staged", j->id,
		    f[VISION] == NULL ? "driving_vision" :
		    "driving_policy or driving_on_policy");
	if (f[ON_POLICY] != NULL && f[POLICY] != NULL)
		warnx("%s: is not used, since there is an on_policy",
		    f[POLICY]);
	p->use[p->n++] = VISION;
	p->use[p->n++] = first;
	if (f[OFF_POLICY] != NULL)
		p->use[p->n++] = OFF_POLICY;
	p->type = p->n == 3 ? "vision_multi_policy" : "vision_policy";
	return 0;
}

/* steps of the history that a model reads, 0 if it reads none */
static int64_t
history(const struct mr_onnx *w)
{
	struct mr_onnx_info info;
	size_t i;

	mr_onnx_info(w, &info);
	for (i = 0; i < info.ninputs; i++)
		if (strcmp(info.inputs[i].name, "features_buffer") == 0 &&
		    info.inputs[i].ndim > 1)
			return info.inputs[i].dim[1];
	return 0;
}

/* walks every source; says what is read */
static int
check_files(struct plan *p, struct mr_err *e)
{
	struct mr_onnx *w;
	struct stat st;
	const char *path;
	size_t i;

	p->skip = 4;	/* runs at 20 Hz, remembers at 5 Hz */
	for (i = 0; i < p->n; i++) {
		path = p->files->file[p->use[i]];
		if (mr_onnx_file(path, &w, e) == -1)
			return -1;
		if (history(w) >= LONG_HISTORY)
			p->skip = 1;
		mr_onnx_free(w);
		if (stat(path, &st) == -1)
			return mr_fail(e, "%s: %s", path, strerror(errno));
		p->bytes += (uint64_t)st.st_size;
		printf("  source %s: %s (%lld bytes)\n",
		    component_name(p->use[i]), path, (long long)st.st_size);
	}
	return 0;
}

/* the option's, the device's, or the format's default; never changes layout */
static int
find_version(struct plan *p, const struct job *j, struct mr_err *e)
{
	const char *dir, *v = j->version;
	struct mr_json all;
	char *path;
	int rc = 0;

	p->version = NULL;
	if (v[0] == '\0') {
		dir = getenv("MR_MODELS_DIR");
		path = mr_fmt("%s/.model_versions.json",
		    dir != NULL && dir[0] != '\0' ? dir : "/data/models");
		if (mr_json_load(&all, path, e) == 0) {
			v = mr_json_str(all, j->id, "");
			if (!mr_version_ok(v))
				rc = mr_fail(e, "%s: %s: version is "
				    "\"%.40s\", wanted v and a number", path,
				    j->id, v);
			p->version = mr_strdup(v);
			mr_json_free(all);
		} else if (errno != ENOENT)
			rc = -1;
		free(path);
	}
	if (rc == 0 && p->version == NULL)
		p->version = mr_strdup(v);
	if (rc == 0 && p->version[0] == '\0' && p->supercombo) {
		free(p->version);
		p->version = mr_strdup("v16");
	}
	return rc;
}

int
plan_make(struct plan *p, const struct job *j, const struct staged *files,
    struct mr_err *e)
{
	memset(p, 0, sizeof(*p));
	p->files = files;
	return select_files(p, j, e) == -1 || check_files(p, e) == -1 ||
	    find_version(p, j, e) == -1 ? -1 : 0;
}
