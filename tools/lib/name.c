/* The one check of everything that becomes a file name, target or word. */
#include <string.h>

#include "mr.h"

/* Is S made of N characters of SET? */
static int
all_of(const char *s, size_t n, const char *set)
{
	return strlen(s) == n && strspn(s, set) == n;
}

/* one list, so that no locale has a say */
#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HEX DIGITS "abcdef"

int
mr_id_ok(const char *id)
{
	size_t n;

	n = strlen(id);
	return n >= 1 && n <= MR_ID_MAX &&
	    strchr(DIGITS LETTERS, id[0]) != NULL &&
	    strspn(id, DIGITS LETTERS "._-") == n;
}

int
mr_version_ok(const char *version)
{
	size_t n;

	n = strlen(version);
	if (n == 0)
		return 1;
	return version[0] == 'v' && n >= 2 && n <= 5 &&
	    strspn(version + 1, DIGITS) == n - 1;
}

int
mr_ref_ok(const char *ref)
{
	return all_of(ref, 40, HEX);
}

int
mr_oid_ok(const char *oid)
{
	return all_of(oid, 64, HEX);
}

int
mr_component_ok(const char *component)
{
	static const char *const known[] = {
		"driving_supercombo", "driving_vision", "driving_policy",
		"driving_on_policy", "driving_off_policy",
		"dmonitoring_model"
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(component, known[i]) == 0)
			return 1;
	return 0;
}

int
mr_format_ok(const char *format)
{
	return strcmp(format, "split") == 0 ||
	    strcmp(format, "supercombo") == 0;
}
