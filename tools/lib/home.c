/* Where the running program lies, and the files that belong to it. */
#include <sys/stat.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

char *
mr_home_program(const char *name)
{
	const char *p, *end;
	char *path, cwd[PATH_MAX];

	if (strchr(name, '/') != NULL) {
		if (name[0] == '/')
			path = mr_strdup(name);
		else if (getcwd(cwd, sizeof(cwd)) == NULL)
			return NULL;
		else
			path = mr_fmt("%s/%s", cwd, name);
		if (access(path, F_OK) == 0)
			return path;
		free(path);
		return NULL;
	}
	for (p = getenv("PATH"); p != NULL; p = *end == ':' ? end + 1 : NULL) {
		end = p + strcspn(p, ":");
		path = mr_fmt("%.*s/%s", (int)(end - p), p, name);
		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

char *
mr_home_bin(const char *argv0)
{
	char *found, *real, *slash;

	real = realpath("/proc/self/exe", NULL);
	if (real == NULL && (found = mr_home_program(argv0)) != NULL) {
		real = realpath(found, NULL);
		free(found);
	}
	if (real != NULL && (slash = strrchr(real, '/')) != NULL)
		slash[slash == real] = '\0';
	return real;
}

char *
mr_home_device(const char *bin)
{
	struct stat st;
	const char *set;
	char *dir;

	set = getenv("MR_DEVICE_DIR");
	if (set != NULL && set[0] != '\0')
		return realpath(set, NULL);
	dir = mr_fmt("%s/../../tools/device", bin);
	if (stat(dir, &st) == 0)
		return dir;
	free(dir);
	return stat(MR_LIBEXEC "/device", &st) == 0 ?
	    mr_strdup(MR_LIBEXEC "/device") : NULL;
}
