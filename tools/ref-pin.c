/* Replaces a branch or tag in a source map by the commit it is now. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr.h"

static char	**maps;	/* -m, ended by NULL */

static int
usage(FILE *f)
{
	fputs("usage: ref-pin [-t seconds] [-u url] -m map ... id\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* ---- the place of one value in a JSON text that was parsed before ---- */

static const char *
blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* One character of a string at *P, escapes decoded; beyond ASCII: 0x80. */
static int
character(const char **p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *s;
	char code[5];
	long c;

	s = *p;
	if (*s != '\\') {
		*p += 1;
		return (unsigned char)*s < 0x80 ? *s : 0x80;
	}
	if (s[1] != 'u') {
		*p += 2;
		return s[1] != '\0' && strchr(from, s[1]) != NULL ?
		    to[strchr(from, s[1]) - from] : 0x80;
	}
	*p += 2 + strnlen(s + 2, 4);
	memcpy(code, s + 2, (size_t)(*p - s - 2));
	code[*p - s - 2] = '\0';
	c = strtol(code, NULL, 16);
	return c < 0x80 ? (int)c : 0x80;
}

/* Passes the string at *P, its quotes too; is it WANT? */
static int
string_is(const char **p, const char *want)
{
	int same = 1;

	for (*p += 1; **p != '"' && **p != '\0'; )
		if (character(p) != *want || *want == '\0')
			same = 0;
		else
			want++;
	*p += **p == '"';
	return same && *want == '\0';
}

/* Passes the value at P. */
static const char *
value_end(const char *p)
{
	size_t depth = 0;

	do {
		if (*p == '"') {
			string_is(&p, "");
			continue;
		}
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		else if (depth == 0)
			return p + strcspn(p, ",]} \t\r\n");
		p++;
	} while (depth > 0 && *p != '\0');
	return p;
}

/* The value of member NAME in the object at P, or NULL. */
static const char *
member(const char *p, const char *name)
{
	int hit;

	if (*p != '{')
		return NULL;
	for (p = blanks(p + 1); *p == '"'; p = blanks(p + 1)) {
		hit = string_is(&p, name);
		p = blanks(blanks(p) + 1);	/* the colon */
		if (hit)
			return p;
		p = blanks(value_end(p));
		if (*p != ',')
			return NULL;
	}
	return NULL;
}

/* ---- the remote ---- */

/* Is S a ref's name, as git check-ref-format has it, and no option? */
static int
ref_name_ok(const char *s)
{
	size_t n, i;

	n = strlen(s);
	if (n == 0 || n > 255 || s[0] == '-' || s[0] == '/' ||
	    s[n - 1] == '/' || s[n - 1] == '.' || strcmp(s, "@") == 0)
		return 0;
	for (i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f ||
		    strchr("~^:?*[\\", s[i]) != NULL ||
		    (s[i] == '.' && (i == 0 || s[i - 1] == '/' ||
		    s[i - 1] == '.')) ||
		    (s[i] == '/' && s[i + 1] == '/') ||
		    (s[i] == '@' && s[i + 1] == '{') ||
		    (strncmp(s + i, ".lock", 5) == 0 &&
		    (s[i + 5] == '\0' || s[i + 5] == '/')))
			return 0;
	return 1;
}

/* The commit that `git ls-remote` printed for REF; NULL if none did. */
static char *
listed(const char *text, const char *ref)
{
	const char *line, *next;
	size_t n;

	n = strlen(ref);
	for (line = text; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		if (next - line == (ptrdiff_t)(41 + n) && line[40] == '\t' &&
		    strncmp(line + 41, ref, n) == 0)
			return mr_fmt("%.40s", line);
		next += *next == '\n';
	}
	return NULL;
}

/* Asks URL what NAME is; *COMMIT is for the caller to free. */
static int
resolve(const struct mr_model *m, const char *url, unsigned seconds,
    char **commit)
{
	char *ref[3], *branch, *tag, *peeled, *shown;
	const char *argv[] = { "git", "ls-remote", "--", url, NULL, NULL,
	    NULL, NULL };
	struct mr_git g;
	int full, i, status;

	shown = mr_git_shown(url);
	full = strncmp(m->ref, "refs/", 5) == 0;
	ref[0] = mr_fmt("%s%s", full ? "" : "refs/heads/", m->ref);
	ref[1] = mr_fmt("%s%s", full ? "" : "refs/tags/", m->ref);
	ref[2] = mr_fmt("%s^{}", ref[1]);
	for (i = 0; i < 3; i++)
		argv[4 + i] = ref[i];
	status = mr_git(&g, url, argv, seconds, 0);
	branch = listed(g.out, ref[0]);
	tag = listed(g.out, ref[1]);
	peeled = listed(g.out, ref[2]);
	*commit = NULL;
	if (status != MR_OK)
		warnx("%s: %s could not be asked for %s: %s", m->id, shown,
		    m->ref, g.why);
	else if (!full && branch != NULL && tag != NULL)
		warnx("%s: %s is a branch and a tag at %s, wanted one: write "
		    "refs/heads/%s or refs/tags/%s", m->id, m->ref, shown,
		    m->ref, m->ref);
	else if (branch == NULL && tag == NULL)
		warnx("%s: no branch or tag %s at %s", m->id, m->ref,
		    shown);
	else
		*commit = mr_strdup(peeled != NULL ? peeled :
		    branch != NULL ? branch : tag);
	if (*commit != NULL && !mr_ref_ok(*commit)) {
		warnx("%s: %s named \"%s\", wanted a commit of 40 hex digits",
		    m->id, shown, *commit);
		free(*commit);
		*commit = NULL;
	}
	free(shown);
	free(branch);
	free(tag);
	free(peeled);
	for (i = 0; i < 3; i++)
		free(ref[i]);
	free(g.out);
	return status != MR_OK ? status : *commit != NULL ? MR_OK : MR_NO;
}

/* ---- the map ---- */

/* Puts COMMIT in the place of the model's ref in TEXT; the new text, or NULL
 * if the map no longer says what was asked for. The caller frees. */
static char *
replace(const struct mr_model *m, const char *text, const char *commit)
{
	struct mr_json root;
	struct mr_err e;
	const char *p, *end;
	char *new = NULL;
	int same;

	if (mr_json_parse(&root, text, strlen(text), &e) == -1)
		return NULL;
	same = strcmp(mr_json_str(mr_json_get(root, m->id), "ref", ""),
	    m->ref) == 0;
	mr_json_free(root);
	p = member(blanks(text), m->id);
	p = p != NULL ? member(p, "ref") : NULL;
	if (!same || p == NULL || *p != '"')
		return NULL;
	end = value_end(p);
	new = mr_fmt("%.*s\"%s\"%s", (int)(p - text), text, commit, end);
	if (mr_json_parse(&root, new, strlen(new), &e) == -1 ||
	    strcmp(mr_json_str(mr_json_get(root, m->id), "ref", ""),
	    commit) != 0)
		errx(MR_UNFIT, "%s: %s: its ref cannot be replaced", m->map,
		    m->id);
	mr_json_free(root);
	return new;
}

/* Rewrites the map, whole or not at all; a symbolic link stays one. */
static int
pin(const struct mr_model *m, const char *commit)
{
	struct mr_out o;
	struct mr_err e;
	struct stat st;
	char *path, *text, *new;
	size_t len;
	int status = MR_UNFIT;

	path = realpath(m->map, NULL);
	if (path == NULL)
		err(MR_UNFIT, "%s", m->map);
	/* the lock of its temporary file makes two of us take turns */
	if (mr_out_open(&o, path, &e) == -1)
		errx(MR_UNFIT, "%s", e.text);
	text = mr_slurp(path, MR_JSON_MAX, &len, &e);
	if (text == NULL) {
		mr_out_abort(&o);
		errx(MR_UNFIT, "%s", e.text);
	}
	new = replace(m, text, commit);
	if (new == NULL) {
		warnx("%s: %s: was changed meanwhile, wanted ref %s: run it "
		    "again", m->map, m->id, m->ref);
		status = MR_AGAIN;
		mr_out_abort(&o);
	} else if (stat(path, &st) == -1 ||
	    fchmod(o.fd, st.st_mode & 07777) == -1 ||
	    mr_write(o.fd, new, strlen(new)) == -1) {
		warn("%s", path);
		mr_out_abort(&o);
	} else if (mr_out_commit(&o, &e) == -1) {
		warnx("%s", e.text);
	} else {
		printf("%s: %s -> %s\n", m->id, m->ref, commit);
		status = MR_OK;
	}
	free(new);
	free(text);
	free(path);
	return status;
}

/* Finds the model, asks its remote, rewrites its map. */
static int
pin_id(const char *id, const char *url, unsigned seconds)
{
	char *const none[] = { NULL };
	const struct mr_model *m;
	struct mr_catalog c;
	struct mr_err e;
	char *commit;
	int status;

	if (mr_catalog_load(&c, maps, none, 1, &e) == -1) {
		warnx("%s", e.text);
		return MR_NO;
	}
	m = mr_catalog_find(&c, id);
	if (m != NULL && m->remote != NULL)
		url = m->remote;
	status = MR_NO;
	if (m == NULL) {
		warnx("%s: in no source map", id);
	} else if (mr_ref_ok(m->ref)) {
		printf("%s: is a commit already: %s\n", id, m->ref);
		status = MR_OK;
	} else if (!ref_name_ok(m->ref)) {
		warnx("%s: %s: ref is not the name of a branch or tag", m->map,
		    id);
	} else if (url == NULL) {
		warnx("%s: has no remote of its own, wanted -u URL", id);
		status = MR_UNFIT;
	} else {
		status = resolve(m, url, seconds, &commit);
		if (status == MR_OK)
			status = pin(m, commit);
		free(commit);
	}
	mr_catalog_free(&c);
	return status;
}

int
main(int argc, char *argv[])
{
	const char *url = NULL;
	uint64_t seconds = 60;
	size_t n = 0;
	int c, status;

	maps = mr_malloc(((size_t)argc + 1) * sizeof(*maps));
	while ((c = getopt(argc, argv, "m:t:u:hV")) != -1)
		switch (c) {
		case 'm':
			if (access(optarg, R_OK) == -1)
				err(MR_UNFIT, "%s", optarg);
			maps[n++] = optarg;
			break;
		case 't':
			if (mr_number(optarg, 1000000, &seconds) == -1 ||
			    seconds == 0)
				errx(MR_UNFIT, "-t %s: wanted seconds, 1 to "
				    "1000000", optarg);
			break;
		case 'u':
			url = *optarg != '\0' ? optarg : NULL;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			return mr_version();
		default:
			return usage(stderr);
		}
	maps[n] = NULL;
	if (argc - optind != 1 || n == 0)
		return usage(stderr);
	if (!mr_id_ok(argv[optind]))
		errx(MR_UNFIT, "\"%.80s\": not a model id", argv[optind]);
	mr_git_env();
	status = pin_id(argv[optind], url, (unsigned)seconds);
	free(maps);
	return mr_finish(status);
}
