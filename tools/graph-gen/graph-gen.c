/* Source maps, manifests, records and goals -> graph.mk: what is stale. */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "graph-gen.h"

static int
usage(FILE *f)
{
	fputs("usage: graph-gen [-ghV] [-t status|plan|why|verify] -b BASE "
	    "... -m MAP ... -r RESULTS\n"
	    "                 [-i IDENTITY] [-l LIMIT] [-z PART] [GOAL ...]\n"
	    "goals: all extract force onnx/ID compiled/ID.pkl ready/ID "
	    "force/ID\n", f);
	return f == stdout ? mr_finish(MR_OK) : MR_UNFIT;
}

/* what the command line says */
struct opts {
	char	**maps, **manifests;	/* NULL-terminated */
	const char	*report;	/* NULL: graph.mk */
	struct wanted	 wanted;
	int	 gpu;			/* also the external-GPU models */
};

/* appends to a NULL-terminated list */
static void
push(char ***list, char *word)
{
	size_t n = 0;

	while (*list != NULL && (*list)[n] != NULL)
		n++;
	*list = mr_realloc(*list, (n + 2) * sizeof(**list));
	(*list)[n] = word;
	(*list)[n + 1] = NULL;
}

/* the goals that name one model: what is before and after the id, and the
 * last stage that the goal reaches */
static const struct {
	const char	*before, *after;
	int		 stage, force;
} kinds[] = {
	{ "onnx/", "", FETCH, 0 },
	{ "compiled/", ".pkl", COMPILE, 0 },
	{ "ready/", "", READY, 0 },
	{ "force/", "", READY, 1 },
	{ "why/", "", READY, 0 }
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* wants stages 0..LAST of a model */
static void
want(struct state *s, int last, int force)
{
	int g;

	for (g = 0; g <= last; g++)
		s->want[g] = 1;
	s->force |= force;
}

/* wants a stage of every model that a whole-catalog goal means */
static void
want_all(struct state *s, size_t n, int last, int force, int gpu)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (gpu || !s[i].model->gpu)
			want(&s[i], last, force);
}

/* the index of the model named by the LEN bytes at ID, or -1 */
static ssize_t
find(const struct mr_catalog *c, const char *id, size_t len)
{
	const struct mr_model *m;
	char name[MR_ID_MAX + 1];

	if (len > MR_ID_MAX)
		return -1;
	memcpy(name, id, len);
	name[len] = '\0';
	m = mr_catalog_find(c, name);
	return m != NULL ? m - c->models : -1;
}

/* understands one goal; -1 (said) if it names no model */
static int
take_goal(const char *goal, const struct mr_catalog *c, struct state *s,
    const struct opts *o)
{
	size_t k, len, n = c->n, b, a;
	const char *id;
	int there;
	ssize_t i;

	if (strcmp(goal, "all") == 0)
		want_all(s, n, READY, 0, o->gpu);
	else if (strcmp(goal, "extract") == 0)
		want_all(s, n, FETCH, 0, o->gpu);
	else if (strcmp(goal, "force") == 0)
		want_all(s, n, READY, 1, o->gpu);
	else {
		len = strlen(goal);
		for (k = 0; k < KINDS; k++) {
			b = strlen(kinds[k].before);
			a = strlen(kinds[k].after);
			if (len > a + b &&
			    strncmp(goal, kinds[k].before, b) == 0 &&
			    strcmp(goal + len - a, kinds[k].after) == 0)
				break;
		}
		if (k == KINDS) {
			warnx("%s: no such goal", goal);
			return -1;
		}
		id = goal + b;
		len -= a + b;
		i = find(c, id, len);
		if (i == -1) {
			there = access(goal, F_OK) == 0;
			warnx("%s: no model \"%.*s\" in the source maps%s",
			    goal, (int)(len < 80 ? len : 80), id, there ?
			    ", though such a file lies there: remove it" :
			    ": make status lists them");
			return -1;
		}
		want(&s[i], kinds[k].stage, kinds[k].force);
	}
	return 0;
}

/* prints "NAME := id id ..." of the models that match */
static size_t
list(const char *name, const struct state *s, size_t n, int stage)
{
	size_t i, count = 0;

	printf("%s :=", name);
	for (i = 0; i < n; i++)
		if (s[i].want[stage] && (s[i].stale[stage] != NULL ||
		    (s[i].force && stage != FETCH))) {
			printf(" %s", s[i].model->id);
			count++;
		}
	putchar('\n');
	return count;
}

/* has the model anything to do in this run? */
static int
busy(const struct state *s)
{
	int g;

	for (g = 0; g < STAGES; g++)
		if (s->want[g] && (s->stale[g] != NULL ||
		    (s->force && g != FETCH)))
			return 1;
	return 0;
}

/* graph.mk: facts only; mk/rebuild.mk has the recipes */
static void
emit(const struct state *s, size_t n, char *const goals[])
{
	const struct mr_model *m;
	size_t i, total, current = 0;

	total = list("FETCH", s, n, FETCH);
	total += list("COMPILE", s, n, COMPILE);
	total += list("READY", s, n, READY);
	printf("GOALS :=");
	for (i = 0; goals[i] != NULL; i++)
		printf(" %s", goals[i]);
	putchar('\n');
	for (i = 0; i < n; i++) {
		if (!s[i].want[FETCH])
			continue;
		m = s[i].model;
		if (!busy(&s[i])) {
			current++;
			continue;
		}
		printf("fetch.%s := -f %s%s%s%s %s %s\n", m->id, m->format,
		    m->gpu ? " -g" : "", m->remote ? " -u " : "",
		    m->remote ? m->remote : "", m->id, m->ref);
		printf("compile.%s := -f %s%s%s%s%s %s\n", m->id, m->format,
		    m->gpu ? " -g" : "", s[i].force ? " -F" : "",
		    m->version && *m->version ? " -v " : "",
		    m->version ? m->version : " -N", m->id);
	}
	printf("TOTAL := %zu\nCURRENT := %zu\n", total, current);
}

/* names files in compiled/ that no model owns; how many */
static size_t
strays(const struct mr_catalog *c)
{
	static const char older[] = "_driving_tinygrad.pkl";
	const size_t end = sizeof(older) - 1;
	struct dirent *d;
	size_t len, found = 0;
	DIR *dir;

	dir = opendir("compiled");
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		len = strlen(d->d_name);
		if (d->d_name[0] == '.' || mr_litter(d->d_name))
			continue;
		if (len > 4 && strcmp(d->d_name + len - 4, ".pkl") == 0 &&
		    find(c, d->d_name, len - 4) != -1)
			continue;
		warnx("compiled/%s: %s", d->d_name, len > end &&
		    strcmp(d->d_name + len - end, older) == 0 &&
		    find(c, d->d_name, len - end) != -1 ?
		    "has the name of an older pipeline: make init adopts it" :
		    "belongs to no model in the source maps: remove it, or "
		    "name its map in SOURCE_MAPS");
		found++;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

/* seconds since the identity was written, -1 if it is not there */
static long
identity_age(const char *path)
{
	struct stat st;
	long age;

	if (path == NULL || stat(path, &st) == -1)
		return -1;
	age = (long)(time(NULL) - st.st_mtime);
	return age < 0 ? 0 : age;
}

static int
report(const struct opts *o, const struct mr_catalog *c,
    const struct state *s)
{
	size_t i, found, n = c->n;
	long age;

	age = identity_age(o->wanted.identity);
	if (strcmp(o->report, "status") == 0) {
		found = strays(c);
		return mr_worse(found ? MR_NO : MR_OK,
		    report_status(s, n, age));
	}
	if (strcmp(o->report, "plan") == 0)
		return report_plan(s, n, age);
	if (strcmp(o->report, "verify") == 0) {
		for (i = 0; i < n; i++)
			if (s[i].verify != NULL)
				fputs(s[i].verify, stdout);
		return strays(c) ? MR_NO : MR_OK;
	}
	for (i = 0; i < n; i++)
		if (s[i].want[READY])
			report_why(&s[i]);
	report_age(age);
	return MR_OK;
}

static int
run(const struct opts *o, char *const goals[])
{
	struct mr_catalog c;
	struct mr_err e;
	struct state *s;
	size_t i;
	int status = MR_OK;

	if (mr_catalog_load(&c, o->maps, o->manifests, 0, &e) == -1) {
		warnx("%s", e.text);
		return MR_UNFIT;
	}
	s = mr_malloc(c.n * sizeof(*s));
	memset(s, 0, c.n * sizeof(*s));
	for (i = 0; i < c.n; i++)
		s[i].model = &c.models[i];
	for (i = 0; goals[i] != NULL; i++)
		if (take_goal(goals[i], &c, s, o) == -1)
			status = MR_UNFIT;
	if (o->report != NULL && goals[0] == NULL)
		want_all(s, c.n, READY, 0, o->gpu);
	if (status == MR_OK) {
		evaluate(s, c.n, &o->wanted);
		if (o->report != NULL)
			status = report(o, &c, s);
		else
			emit(s, c.n, goals);
	}
	for (i = 0; i < c.n; i++)
		forget(&s[i]);
	free(s);
	mr_catalog_free(&c);
	return status;
}

/* a count of bytes from the command line, or -1 (said) */
static int
bytes(const char *arg, const char *what, uint64_t *value)
{
	if (mr_number(arg, UINT64_MAX, value) == 0 && *value > 0)
		return 0;
	warnx("%s is \"%s\", wanted a count of bytes", what, arg);
	return -1;
}

int
main(int argc, char *argv[])
{
	static char *none[] = { NULL };
	struct opts o = { .wanted = { .results = NULL,
	    .limit = 100000000, .part = 99614720 } };
	int c, bad = 0, status;

	while ((c = getopt(argc, argv, "b:m:r:i:l:z:t:ghV")) != -1)
		switch (c) {
		case 'b':
			push(&o.manifests, optarg);
			break;
		case 'm':
			push(&o.maps, optarg);
			break;
		case 'r':
			o.wanted.results = optarg;
			break;
		case 'i':
			o.wanted.identity = optarg;
			break;
		case 'l':
			bad |= bytes(optarg, "limit", &o.wanted.limit);
			break;
		case 'z':
			bad |= bytes(optarg, "part size", &o.wanted.part);
			break;
		case 't':
			o.report = optarg;
			bad |= strcmp(optarg, "status") != 0 &&
			    strcmp(optarg, "plan") != 0 &&
			    strcmp(optarg, "why") != 0 &&
			    strcmp(optarg, "verify") != 0;
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
	if (bad || o.maps == NULL || o.wanted.results == NULL)
		return usage(stderr);
	o.wanted.detail = o.report != NULL;
	if (o.manifests == NULL)
		push(&o.manifests, NULL);
	status = run(&o, argc > optind ? argv + optind : none);
	free(o.maps);
	free(o.manifests);
	return mr_finish(status);
}
