/* A model's entry -> its ONNX sources under onnx/ID and the source record. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

enum { MAX_SOURCES = 256, MAX_WORDS = 200 };

/* one blob of the commit; several of one component are its chunks */
struct source {
	char	*component, *path, *mode;
	char	*blob;			/* the git blob as it came out */
	char	*object;		/* the content: blob, or the object */
	char	 oid[MR_HEX];		/* sha256 from the pointer, or "" */
	char	 size[24];		/* bytes from the pointer */
};

static struct {
	char	*repo, *remote, *results, *format, *id, *ref;
	char	*hosts[32], *endpoints[32];
	size_t	 nhosts, nendpoints;
	int	 gpu;
	char	*tmp;			/* .state/fetch/ID */
} o;

static int
usage(FILE *f)
{
	fputs("usage: source-fetch [-ghV] -C REPO [-u URL] [-e ENDPOINT] ... "
	    "[-H HOST] ...\n"
	    "                    -f split|supercombo -r RESULTS ID REF\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* a command line under way */
struct words {
	const char	*w[MAX_WORDS];
	size_t	 n;
};

static void
word(struct words *v, const char *s)
{
	if (v->n + 1 >= MAX_WORDS)
		errx(MR_UNFIT, "%s: too many words for %s", o.id, v->w[0]);
	v->w[v->n++] = mr_strdup(s);
	v->w[v->n] = NULL;
}

static void
forget(struct words *v)
{
	while (v->n > 0)
		free((char *)(uintptr_t)v->w[--v->n]);
}

/* git-blob's command line up to its operands */
static void
git_blob(struct words *v, const char *form, const char *operand)
{
	v->n = 0;
	word(v, "git-blob");
	word(v, "-C");
	word(v, o.repo);
	if (o.remote != NULL) {
		word(v, "-u");
		word(v, o.remote);
	}
	word(v, form);
	if (operand != NULL)
		word(v, operand);
}

/* a child's status as ours: what it could not say is 2 */
static int
status_of(int status, const char *tool)
{
	if (status == -1)
		warnx("%s: %s: %s", o.id, tool, strerror(errno));
	else if (status > 2 && status != MR_AGAIN)
		warnx("%s: %s: ended with status %d", o.id, tool, status);
	return status == MR_NO || status == MR_AGAIN ? status :
	    status == 0 ? MR_OK : MR_UNFIT;
}

/* opens FILE for writing or reading, or ends */
static int
must_open(const char *file, int flags)
{
	int fd;

	fd = open(file, flags | O_CLOEXEC, 0666);
	if (fd == -1)
		err(MR_UNFIT, "%s", file);
	return fd;
}

/* runs V with standard input and output from and to files (NULL: none) */
static int
run(struct words *v, const char *in, const char *out)
{
	int fi = -2, fo = -1, status;

	if (in != NULL)
		fi = must_open(in, O_RDONLY);
	if (out != NULL)
		fo = must_open(out, O_WRONLY | O_CREAT | O_TRUNC);
	status = status_of(mr_run(v->w, fi, fo, -1, 0), v->w[0]);
	if (fi >= 0)
		close(fi);
	if (fo >= 0)
		close(fo);
	forget(v);
	return status;
}

/* the next blank-separated word of *P, NUL-terminated, or NULL */
static char *
next(char **p)
{
	char *s;

	do
		s = strsep(p, " ");
	while (s != NULL && *s == '\0');
	return s;
}

/* asks git-blob which blobs the model is made of */
static int
find_sources(struct source *s, size_t *n)
{
	struct words v;
	char *text, *rest, *line;
	int status;

	git_blob(&v, "-s", o.format);
	if (o.gpu)
		word(&v, "-g");
	word(&v, o.ref);
	text = mr_capture(v.w, MR_BUF, 0, &status);
	forget(&v);
	if (text == NULL)
		err(MR_UNFIT, "git-blob");
	status = status_of(status, "git-blob");
	*n = 0;
	for (rest = text; status == MR_OK &&
	    (line = strsep(&rest, "\n")) != NULL && *line != '\0'; (*n)++) {
		if (*n == MAX_SOURCES)
			errx(MR_NO, "%s: more than %d sources", o.id,
			    MAX_SOURCES);
		memset(&s[*n], 0, sizeof(*s));
		s[*n].component = mr_strdup(next(&line));
		s[*n].path = mr_strdup(line ? next(&line) : "");
		s[*n].mode = mr_strdup(line ? next(&line) : "");
		s[*n].blob = mr_fmt("%s/%zu.blob", o.tmp, *n);
		if (!mr_component_ok(s[*n].component))
			errx(MR_UNFIT, "%s: git-blob named \"%.60s\", wanted a "
			    "component", o.id, s[*n].component);
	}
	free(text);
	return status;
}

/* takes the blobs out of the commit and sees which are pointers */
static int
take_blobs(struct source *s, size_t n)
{
	struct mr_pointer p;
	struct mr_err e;
	struct words v;
	struct stat st;
	char *text;
	size_t i, len;
	int is, status;

	for (i = 0; i < n; i++) {
		git_blob(&v, "-p", o.ref);
		word(&v, s[i].path);
		status = run(&v, NULL, s[i].blob);
		if (status != MR_OK)
			return status;
		s[i].object = s[i].blob;
		if (stat(s[i].blob, &st) == -1)
			err(MR_UNFIT, "%s", s[i].blob);
		if (st.st_size >= MR_POINTER_MAX)
			continue;
		text = mr_slurp(s[i].blob, MR_POINTER_MAX, &len, &e);
		if (text == NULL)
			errx(MR_UNFIT, "%s", e.text);
		is = mr_pointer_parse(text, len, &p, &e);
		free(text);
		if (is == -1) {
			warnx("%s: %s: %s", o.id, s[i].path, e.text);
			return MR_NO;
		}
		if (is == 0)
			continue;
		if (p.notice != NULL)
			warnx("%s: %s: %s", o.id, s[i].path, p.notice);
		memcpy(s[i].oid, p.oid, sizeof(p.oid));
		snprintf(s[i].size, sizeof(s[i].size), "%llu",
		    (unsigned long long)p.size);
		s[i].object = mr_fmt("%s/%zu.object", o.tmp, i);
	}
	return MR_OK;
}

/* adds the commit's endpoints and stores to lfs-fetch's command line; the
 * words that are borrowed stay in *TEXT, which the caller frees */
static int
lfs_words(struct words *v)
{
	struct words b;
	char *text, *rest, *line, *kind, *value;
	size_t i;
	int status;

	git_blob(&b, "-l", NULL);
	word(&b, o.ref);
	text = mr_capture(b.w, MR_BUF, 0, &status);
	forget(&b);
	if (text == NULL)
		err(MR_UNFIT, "git-blob");
	status = status_of(status, "git-blob");
	for (rest = text; (line = strsep(&rest, "\n")) != NULL; ) {
		kind = strsep(&line, " ");
		if (kind == NULL || line == NULL)
			continue;
		if (strcmp(kind, "store") == 0) {
			word(v, "-S");
			word(v, line);	/* to the end: may hold blanks */
		} else if (strcmp(kind, "endpoint") == 0 &&
		    (value = next(&line)) != NULL) {
			word(v, "-e");
			word(v, value);
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

/* the staged name of a component; the caller frees */
static char *
staged(const char *component)
{
	return mr_fmt("onnx/%s/%s_%s.onnx", o.id, o.id, component);
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

/* fetches the objects of all pointers in one call */
static int
fetch_objects(struct source *s, size_t n)
{
	struct words v = { .n = 0 };
	char *list, *path;
	size_t i, wanted = 0;
	FILE *f;
	int status;

	list = mr_fmt("%s/list", o.tmp);
	f = fopen(list, "we");
	if (f == NULL)
		err(MR_UNFIT, "%s", list);
	for (i = 0; i < n; i++) {
		if (s[i].oid[0] == '\0')
			continue;
		if (have(&s[i])) {
			path = staged(s[i].component);
			free(s[i].object);
			s[i].object = path;
			continue;
		}
		fprintf(f, "%s %s %s\n", s[i].oid, s[i].size, s[i].object);
		wanted++;
	}
	if (fclose(f) != 0)
		err(MR_UNFIT, "%s", list);
	status = MR_OK;
	if (wanted > 0) {
		word(&v, "lfs-fetch");
		status = lfs_words(&v);
		word(&v, "-i");
		if (status == MR_OK)
			status = run(&v, list, NULL);
		forget(&v);
		if (status == MR_NO)
			warnx("%s: source lost: an object of commit %s is on "
			    "no endpoint", o.id, o.ref);
	}
	free(list);
	return status;
}

/* joins a component's chunks into one file; S is the first of N */
static void
join(struct source *s, size_t n)
{
	char *path, *buf;
	ssize_t got;
	size_t i;
	int in, out;

	path = mr_fmt("%s/%s.joined", o.tmp, s->component);
	out = must_open(path, O_WRONLY | O_CREAT | O_TRUNC);
	buf = mr_malloc(MR_BUF);
	for (i = 0; i < n; i++) {
		in = must_open(s[i].object, O_RDONLY);
		while ((got = mr_read(in, buf, MR_BUF)) > 0)
			if (mr_write(out, buf, (size_t)got) == -1)
				err(MR_UNFIT, "%s", path);
		if (got == -1)
			err(MR_UNFIT, "%s", s[i].object);
		close(in);
	}
	close(out);
	free(buf);
	s->object = path;
	s->oid[0] = s->size[0] = '\0';
}

/* checks one component and gives it its final name; its record member */
static int
stage(const struct source *s, struct mr_json *files)
{
	struct words v = { .n = 0 };
	struct mr_json rec, f;
	struct mr_err e;
	char *out, *path;
	int status;

	path = staged(s->component);
	out = mr_fmt("%s/%s.json", o.tmp, s->component);
	word(&v, "onnx-stage");
	if (s->oid[0] != '\0') {
		word(&v, "-d");
		word(&v, s->oid);
		word(&v, "-z");
		word(&v, s->size);
	}
	word(&v, "-o");
	word(&v, path);
	status = run(&v, s->object, out);
	if (status == MR_OK) {
		if (mr_json_load(&rec, out, &e) == -1)
			errx(MR_UNFIT, "%s", e.text);
		f = mr_json_object();
		mr_json_set_str(&f, "component", s->component);
		mr_json_set_str(&f, "git_path", s->path);
		mr_json_set_str(&f, "path", path);
		mr_json_set_int(&f, "size",
		    (uint64_t)mr_json_int(rec, "size", 0));
		mr_json_set_str(&f, "sha256", mr_json_str(rec, "sha256", ""));
		mr_json_push(files, f);
		mr_json_free(rec);
	}
	free(path);
	free(out);
	return status;
}

/* does the list of record members have this staged name? */
static int
listed(struct mr_json files, const char *name)
{
	const char *path;
	size_t i;

	for (i = 0; i < mr_json_len(files); i++) {
		path = mr_json_str(mr_json_at(files, i), "path", "");
		if (strcmp(strrchr(path, '/') + 1, name) == 0)
			return 1;
	}
	return 0;
}

/* removes components of an older ref: a compiler would take them up */
static void
tidy(struct mr_json files)
{
	struct dirent *d;
	size_t n, id;
	char *dir, *path;
	DIR *h;

	dir = mr_fmt("onnx/%s", o.id);
	h = opendir(dir);
	id = strlen(o.id);
	while (h != NULL && (d = readdir(h)) != NULL) {
		n = strlen(d->d_name);
		if (n < id + 6 || strncmp(d->d_name, o.id, id) != 0 ||
		    strcmp(d->d_name + n - 5, ".onnx") != 0 ||
		    listed(files, d->d_name))
			continue;
		path = mr_fmt("%s/%s", dir, d->d_name);
		unlink(path);
		free(path);
	}
	if (h != NULL)
		closedir(h);
	free(dir);
}

/* stages all components, then writes the record */
static int
stage_all(struct source *s, size_t n)
{
	struct mr_json rec, files;
	struct mr_key k;
	struct mr_err e;
	char *path;
	size_t i, many;
	int status = MR_OK;

	path = mr_fmt("%s/%s_source.json", o.results, o.id);
	if (unlink(path) == -1 && errno != ENOENT)
		err(MR_UNFIT, "%s", path);
	files = mr_json_array();
	for (i = 0; status == MR_OK && i < n; i += many) {
		for (many = 1; i + many < n && strcmp(s[i].component,
		    s[i + many].component) == 0; many++)
			;
		if (many > 1)
			join(&s[i], many);
		status = stage(&s[i], &files);
	}
	if (status == MR_OK)
		tidy(files);
	rec = mr_json_object();
	mr_json_set_str(&rec, "id", o.id);
	mr_json_set_str(&rec, "ref", o.ref);
	mr_json_set_str(&rec, "input_format", o.format);
	mr_json_set_bool(&rec, "uses_external_gpu", o.gpu);
	mr_json_set(&rec, "files", files);
	mr_key_fetch(&k, o.format, o.gpu, o.ref);
	mr_key_record(&k, &rec, "");
	mr_key_free(&k);
	if (status == MR_OK && mr_json_save(rec, path, &e) == -1) {
		warnx("%s", e.text);
		status = MR_UNFIT;
	}
	mr_json_free(rec);
	free(path);
	return status;
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
	char *dir;
	size_t n;
	int status;

	o.tmp = mr_fmt(".state/fetch/%s", o.id);
	dir = mr_fmt("onnx/%s", o.id);
	if (mr_mkdirs(o.tmp, &e) == -1 || mr_mkdirs(dir, &e) == -1 ||
	    mr_mkdirs(o.results, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	free(dir);
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
	if (argc - optind != 2 || o.repo == NULL || o.format == NULL ||
	    o.results == NULL)
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
