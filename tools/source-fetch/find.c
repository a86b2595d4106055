/* The blobs of a model out of the commit, and the objects they point to. */
#include <sys/stat.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "source-fetch.h"

/* one line of git-blob -s, "component path mode oid size"; -1 if it is none */
static int
read_source(struct source *s, char *line, size_t number)
{
	char *component, *path;

	component = strsep(&line, " ");
	path = line != NULL ? strsep(&line, " ") : NULL;
	if (path == NULL || *path == '\0' || !mr_component_ok(component))
		return -1;
	memset(s, 0, sizeof(*s));
	s->component = mr_strdup(component);
	s->path = mr_strdup(path);
	s->blob = mr_fmt("%s/%zu.blob", o.tmp, number);
	s->object = s->blob;
	return 0;
}

int
find_sources(struct source *s, size_t *n)
{
	struct words v;
	char *text, *rest, *line;
	int status;

	git_blob(&v, "-s", o.format);
	if (o.gpu)
		word(&v, "-g");
	word(&v, o.ref);
	text = ask(&v, &status);
	*n = 0;
	for (rest = text; status == MR_OK &&
	    (line = strsep(&rest, "\n")) != NULL && *line != '\0'; (*n)++) {
		if (*n == MAX_SOURCES)
			errx(MR_NO, "%s: more than %d sources", o.id,
			    MAX_SOURCES);
		if (read_source(&s[*n], line, *n) == -1)
			errx(MR_UNFIT, "%s: git-blob said \"%.80s\", wanted a "
			    "component, its path, mode, oid and size", o.id,
			    line);
	}
	free(text);
	if (status == MR_OK && *n == 0)
		errx(MR_UNFIT, "%s: git-blob found no sources and said "
		    "nothing", o.id);
	return status;
}

/* is the blob a pointer? then S knows to what */
static int
read_pointer(struct source *s, size_t number)
{
	struct mr_pointer p;
	struct mr_err e;
	struct stat st;
	char *text;
	size_t len;
	int is;

	if (stat(s->blob, &st) == -1)
		err(MR_UNFIT, "%s", s->blob);
	if (st.st_size >= MR_POINTER_MAX)
		return MR_OK;
	text = mr_slurp(s->blob, MR_POINTER_MAX, &len, &e);
	if (text == NULL)
		errx(MR_UNFIT, "%s", e.text);
	is = mr_pointer_parse(text, len, &p, &e);
	free(text);
	if (is == -1) {
		warnx("%s: %s: %s", o.id, s->path, e.text);
		return MR_NO;
	}
	if (is == 0)
		return MR_OK;
	if (p.notice != NULL)
		warnx("%s: %s: %s", o.id, s->path, p.notice);
	memcpy(s->oid, p.oid, sizeof(p.oid));
	snprintf(s->size, sizeof(s->size), "%llu", (unsigned long long)p.size);
	s->object = mr_fmt("%s/%zu.object", o.tmp, number);
	return MR_OK;
}

int
take_blobs(struct source *s, size_t n)
{
	struct words v;
	size_t i;
	int status = MR_OK;

	for (i = 0; status == MR_OK && i < n; i++) {
		git_blob(&v, "-p", o.ref);
		word(&v, s[i].path);
		status = run(&v, NULL, s[i].blob);
		if (status == MR_OK)
			status = read_pointer(&s[i], i);
	}
	return status;
}

/* adds the commit's endpoints and stores to lfs-fetch's command line */
static int
lfs_words(struct words *v)
{
	struct words b;
	char *text, *rest, *line, *kind;
	size_t i;
	int status;

	git_blob(&b, "-l", NULL);
	word(&b, o.ref);
	text = ask(&b, &status);
	for (rest = text; (line = strsep(&rest, "\n")) != NULL; ) {
		kind = strsep(&line, " ");
		if (line == NULL || *line == '\0')
			continue;
		/* a path may hold blanks; behind a URL stands its origin */
		if (strcmp(kind, "store") == 0) {
			word(v, "-S");
			word(v, line);
		} else if (strcmp(kind, "endpoint") == 0) {
			line[strcspn(line, " ")] = '\0';
			word(v, "-e");
			word(v, line);
		}
	}
	free(text);
	for (i = 0; i < o.nendpoints; i++) {
		word(v, "-e");
		word(v, o.endpoints[i]);
	}
	for (i = 0; i < o.nhosts; i++) {
		word(v, "-H");
		word(v, o.hosts[i]);
	}
	return status;
}

/* is the staged file already the object? then nothing is downloaded */
static int
have(const struct source *s)
{
	char hex[MR_HEX], *path;
	struct mr_err e;
	struct stat st;
	uint64_t size, want;
	int yes = 0;

	path = staged(s->component);
	if (mr_number(s->size, UINT64_MAX, &want) == 0 &&
	    stat(path, &st) == 0 && (uint64_t)st.st_size == want &&
	    mr_sha256_file(path, hex, &size, &e) == 0)
		yes = size == want && strcmp(hex, s->oid) == 0;
	free(path);
	return yes;
}

/* writes lfs-fetch's list; how many objects are wanted */
static size_t
write_list(struct source *s, size_t n, const char *list)
{
	size_t i, wanted = 0;
	FILE *f;

	f = fopen(list, "we");
	if (f == NULL)
		err(MR_UNFIT, "%s", list);
	for (i = 0; i < n; i++) {
		if (s[i].oid[0] == '\0')
			continue;
		if (have(&s[i])) {
			free(s[i].object);
			s[i].object = staged(s[i].component);
			continue;
		}
		fprintf(f, "%s %s %s\n", s[i].oid, s[i].size, s[i].object);
		wanted++;
	}
	if (ferror(f) | fclose(f))
		err(MR_UNFIT, "%s", list);
	return wanted;
}

int
fetch_objects(struct source *s, size_t n)
{
	struct words v = { .n = 0 };
	char *list;
	int status = MR_OK;

	list = mr_fmt("%s/list", o.tmp);
	if (write_list(s, n, list) > 0) {
		word(&v, "lfs-fetch");
		status = lfs_words(&v);
		word(&v, "-i");
		if (status == MR_OK) {
			status = run(&v, list, NULL);
			if (status == MR_NO)
				warnx("%s: source lost: an object of commit "
				    "%s is on no endpoint", o.id, o.ref);
		}
		forget(&v);
	}
	free(list);
	return status;
}
