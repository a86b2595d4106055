/* The car's choice of model, switched for a validation and switched back. The
 * journal says what was there; originals lie beside it as hard links, so that
 * what comes back is the very file. */
#include <sys/file.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

enum { NAMES = 4 };
static const char *const names[NAMES] = {
	"Model", "DrivingModel", "ModelVersion", "DrivingModelVersion"
};

/* the folder of the car's data: of /data/openpilot and of a test's root */
static char *
data_of(const char *root)
{
	static const char end[] = "/openpilot";
	size_t n = strlen(root);

	if (n >= sizeof("/data/openpilot") - 1 &&
	    strcmp(root + n - sizeof("/data/openpilot") + 1,
	    "/data/openpilot") == 0)
		return mr_fmt("%.*s", (int)(n - sizeof(end) + 1), root);
	return mr_strdup("/data");
}

static int
exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* removes PATH, which need not be there */
static int
gone(const char *path, struct mr_err *e)
{
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	return mr_fail(e, "%s: %s", path, strerror(errno));
}

/* ---- one file: kept aside, replaced, put back ---- */

/* Links PATH, where it exists, as DIR/NAME; *WAS: does it? */
static int
keep(const char *path, const char *dir, const char *name, int *was,
    struct mr_err *e)
{
	char *aside;
	int rc;

	aside = mr_fmt("%s/%s", dir, name);
	rc = gone(aside, e);
	*was = exists(path);
	if (rc == 0 && *was && linkat(AT_FDCWD, path, AT_FDCWD, aside, 0) ==
	    -1)
		rc = mr_fail(e, "%s: cannot be kept as %s: %s", path, aside,
		    strerror(errno));
	free(aside);
	return rc;
}

/* Puts back what keep found: the file, or none. */
static int
put_back(const char *path, const char *dir, const char *name, int was,
    struct mr_err *e)
{
	char *aside;
	int rc = 0;

	aside = mr_fmt("%s/%s", dir, name);
	if (!was)
		rc = gone(path, e);
	else if (rename(aside, path) == -1 && errno != ENOENT)
		rc = mr_fail(e, "%s: cannot be put back from %s: %s", path,
		    aside, strerror(errno));
	/* rename does nothing where both are one file already */
	if (rc == 0)
		rc = gone(aside, e);
	if (rc == 0 && mr_sync_dir(path) == -1)
		rc = mr_fail(e, "%s: %s", path, strerror(errno));
	free(aside);
	return rc;
}

/* DIR/new, a file with VALUE or, with LINK, a symbolic link to it, takes the
 * name PATH. */
static int
replace(const char *path, const char *dir, const char *value, int link,
    struct mr_err *e)
{
	char *new;
	int fd, rc;

	new = mr_fmt("%s/new", dir);
	rc = gone(new, e);
	if (rc == 0 && link) {
		rc = symlink(value, new);
	} else if (rc == 0) {
		fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd == -1 || mr_write(fd, value, strlen(value)) == -1 ||
		    mr_sync(fd) == -1)
			rc = -1;
		if (fd != -1)
			close(fd);
	}
	if (rc == -1)
		mr_fail(e, "%s: %s", new, strerror(errno));
	else if ((rc = rename(new, path)) == -1)
		mr_fail(e, "%s: %s", path, strerror(errno));
	free(new);
	return rc;
}

/* ---- the whole, by its journal ---- */

/* Puts everything back that the journal names; none: nothing to do. */
static int
undo(const struct switched *s, struct mr_err *e)
{
	struct mr_json j;
	char *journal, *path;
	const char *file;
	size_t i;
	int rc = 0;

	journal = mr_fmt("%s/journal.json", s->dir);
	if (mr_json_load(&j, journal, e) == -1) {
		rc = errno == ENOENT ? 0 : -1;
		free(journal);
		return rc;
	}
	for (i = 0; rc == 0 && i < NAMES; i++) {
		path = mr_fmt("%s/%s", s->params, names[i]);
		rc = put_back(path, s->dir, names[i],
		    mr_json_bool(j, names[i], 0), e);
		free(path);
	}
	file = mr_json_str(j, "file", "");
	path = mr_fmt("%s/%s", s->models, file);
	if (rc == 0 && file[0] != '\0' && strchr(file, '/') == NULL)
		rc = put_back(path, s->dir, "artifact",
		    mr_json_bool(j, "artifact", 0), e);
	if (rc == 0 && !mr_json_bool(j, "models", 1))
		rmdir(s->models);	/* stays if it is somebody's now */
	mr_json_free(j);
	free(path);
	if (rc == 0)
		rc = gone(journal, e);
	free(journal);
	return rc == 0 ? mr_sync_dir(s->dir) : -1;
}

/* Keeps what is there; when this has ended, the journal says so. */
static int
note(const struct switched *s, struct mr_err *e)
{
	struct mr_json j;
	char *path;
	size_t i;
	int was, rc = 0;

	j = mr_json_object();
	mr_json_set_bool(&j, "models", exists(s->models));
	mr_json_set_str(&j, "file", strrchr(s->installed, '/') + 1);
	for (i = 0; rc == 0 && i < NAMES; i++) {
		path = mr_fmt("%s/%s", s->params, names[i]);
		rc = keep(path, s->dir, names[i], &was, e);
		mr_json_set_bool(&j, names[i], was);
		free(path);
	}
	if (rc == 0)
		rc = keep(s->installed, s->dir, "artifact", &was, e);
	if (rc == 0) {
		mr_json_set_bool(&j, "artifact", was);
		path = mr_fmt("%s/journal.json", s->dir);
		rc = mr_json_save(j, path, e);
		free(path);
	}
	mr_json_free(j);
	return rc;
}

/* One validation at a time; 0, or a status, said in E. */
static int
lock(struct switched *s, struct mr_err *e)
{
	char *path;

	if (mr_mkdirs(s->dir, e) == -1)
		return MR_UNFIT;
	path = mr_fmt("%s/lock", s->dir);
	s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (s->lock == -1)
		mr_fail(e, "%s: %s", path, strerror(errno));
	free(path);
	if (s->lock == -1)
		return MR_UNFIT;
	if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
		return MR_OK;
	mr_fail(e, "%s: another validation runs", s->dir);
	return MR_AGAIN;
}

/* Is the car parked? Without the parameter it is no car. */
static int
parked(const struct switched *s, struct mr_err *e)
{
	struct mr_err none;
	char *path, *text;
	size_t n;
	int rc;

	path = mr_fmt("%s/IsOffroad", s->params);
	text = mr_slurp(path, MR_BUF, &n, &none);
	rc = text == NULL || text[0] == '1' ? MR_OK : MR_AGAIN;
	if (rc != MR_OK)
		mr_fail(e, "the car is onroad: %s is not 1", path);
	free(text);
	free(path);
	return rc;
}

int
switch_to(struct switched *s, const char *root, const char *artifact,
    const struct job *j, struct mr_err *e)
{
	const char *value;
	char *data, *path;
	size_t i;
	int rc;

	memset(s, 0, sizeof(*s));
	s->lock = -1;
	data = data_of(root);
	s->params = mr_fmt("%s/params/d", data);
	s->models = mr_fmt("%s/models", data);
	s->installed = mr_fmt("%s/%s_driving_tinygrad.pkl", s->models, j->id);
	s->dir = mr_fmt("%s/compiledmodels/validation", root);
	free(data);
	if (!exists(s->params))
		return MR_OK;
	if ((rc = lock(s, e)) != MR_OK)
		return rc;
	if (undo(s, e) == -1)
		return MR_UNFIT;
	if ((rc = parked(s, e)) != MR_OK)
		return rc;
	if (note(s, e) == -1)
		return MR_UNFIT;
	s->on = 1;
	rc = mr_mkdirs(s->models, e);
	if (rc == 0)
		rc = replace(s->installed, s->dir, artifact, 1, e);
	for (i = 0; rc == 0 && i < NAMES; i++) {
		value = i < 2 ? j->id : j->version;
		path = mr_fmt("%s/%s", s->params, names[i]);
		rc = replace(path, s->dir, value, 0, e);
		free(path);
	}
	return rc == 0 ? MR_OK : MR_UNFIT;
}

int
switch_back(struct switched *s, struct mr_err *e)
{
	int rc = 0;

	if (s->on)
		rc = undo(s, e);
	if (s->lock != -1)
		close(s->lock);
	free(s->dir);
	free(s->params);
	free(s->models);
	free(s->installed);
	memset(s, 0, sizeof(*s));
	s->lock = -1;
	return rc;
}
