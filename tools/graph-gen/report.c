/* What people read: status, plan and why. */
#include <string.h>

#include "graph-gen.h"

void
report_age(long age)
{
	if (age < 0)
		printf("compiler: unknown: it is read by make all\n");
	else if (age < 120)
		printf("compiler: as read %ld s ago\n", age);
	else if (age < 7200)
		printf("compiler: as read %ld min ago\n", age / 60);
	else
		printf("compiler: as read %ld h ago\n", age / 3600);
}

/* the word for one stage of a model */
static const char *
word(const struct state *s, int stage)
{
	static const char *const done[STAGES] = {
		"fetched", "compiled", "ready"
	};

	if (s->stale[stage] == NULL)
		return done[stage];
	if (stage == FETCH && s->lost)
		return "source lost";
	if (s->failed != NULL && strncmp(s->failed, stage_name[stage],
	    strlen(stage_name[stage])) == 0)
		return "failed";
	return s->exists[stage] ? "stale" : "-";
}

int
report_status(const struct state *s, size_t n, long age)
{
	size_t i, current = 0, failed = 0, wide = 5;

	for (i = 0; i < n; i++)
		if (strlen(s[i].model->id) > wide)
			wide = strlen(s[i].model->id);
	printf("%-*s  %-10s  %-5s  %-11s  %-8s  %-6s  %12s\n", (int)wide,
	    "MODEL", "FORMAT", "VER", "SOURCE", "ARTIFACT", "READY", "BYTES");
	for (i = 0; i < n; i++) {
		printf("%-*s  %-10s  %-5s  %-11s  %-8s  %-6s  ", (int)wide,
		    s[i].model->id, s[i].model->format,
		    s[i].model->version ? s[i].model->version : "?",
		    word(&s[i], FETCH), word(&s[i], COMPILE),
		    word(&s[i], READY));
		if (s[i].size > 0)
			printf("%12llu\n", (unsigned long long)s[i].size);
		else
			printf("%12s\n", "-");
		if (s[i].failed != NULL) {
			failed++;
			printf("%*s  failed in %s\n", (int)wide, "",
			    s[i].failed);
		}
		if (s[i].stale[READY] == NULL)
			current++;
	}
	printf("%zu models: %zu current, %zu to do, %zu failed\n", n, current,
	    n - current, failed);
	report_age(age);
	return MR_OK;
}

int
report_plan(const struct state *s, size_t n, long age)
{
	size_t i, count[STAGES] = { 0 };
	int g, refused = 0;

	for (i = 0; i < n; i++)
		for (g = 0; g < STAGES; g++) {
			if (s[i].stale[g] == NULL || !s[i].want[g])
				continue;
			count[g]++;
			refused |= g == COMPILE && s[i].model->version == NULL;
			printf("%-7s  %s: %s\n", stage_name[g],
			    s[i].model->id, s[i].stale[g]);
		}
	printf("%zu to fetch, %zu to compile, %zu to split\n", count[FETCH],
	    count[COMPILE], count[READY]);
	report_age(age);
	return refused ? MR_NO : MR_OK;
}

int
report_why(const struct state *s)
{
	int g;

	for (g = 0; g < STAGES; g++)
		printf("%s: %s: %s\n", s->model->id, stage_name[g],
		    s->stale[g] ? s->stale[g] : "current");
	if (s->failed != NULL)
		printf("%s: failed in %s\n", s->model->id, s->failed);
	return MR_OK;
}
