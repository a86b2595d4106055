/* The failure record of a model. */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"
#include "step.h"

int
record_write(const struct step *s, int status)
{
	struct mr_json j, tail;
	struct mr_err e;
	char *path;
	size_t i;
	int rc;

	j = mr_json_object();
	mr_json_set_str(&j, "id", s->id);
	mr_json_set_str(&j, "status", "failed");
	mr_json_set_str(&j, "error", s->last);
	mr_json_set_str(&j, "stage", s->stage);
	mr_json_set_int(&j, "exit_status", (uint64_t)status);
	tail = mr_json_array();
	for (i = s->lines > TAIL ? s->lines - TAIL : 0; i < s->lines; i++)
		mr_json_push(&tail, mr_json_string(s->tail[i % TAIL]));
	mr_json_set(&j, "log_tail", tail);
	path = mr_fmt("%s/%s_failure.json", s->results, s->id);
	rc = mr_mkdirs(s->results, &e);
	if (rc == 0)
		rc = mr_json_save(j, path, &e);
	if (rc == -1)
		warnx("%s", e.text);
	free(path);
	mr_json_free(j);
	return rc;
}

int
record_remove(const struct step *s)
{
	struct mr_json j;
	struct mr_err e;
	char *path;
	int rc;

	path = mr_fmt("%s/%s_failure.json", s->results, s->id);
	rc = mr_json_load(&j, path, &e);
	if (rc == -1 && errno == ENOENT) {
		free(path);
		return 0;
	}
	if (rc == -1) {
		warnx("%s", e.text);
	} else {
		if (strcmp(mr_json_str(j, "stage", ""), s->stage) == 0 &&
		    (unlink(path) == -1 || mr_sync_dir(path) == -1)) {
			warn("%s: remove", path);
			rc = -1;
		}
		mr_json_free(j);
	}
	free(path);
	return rc;
}
