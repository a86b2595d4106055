/* What a Python pipeline left, and how it becomes ours: adopt.c. */
#ifndef WORKSPACE_INIT_H
#define WORKSPACE_INIT_H

#include "mr.h"

/* Adopts every artifact that has the older name and the recorded digest;
 * RESULTS is the folder of records. Returns a status. */
int	adopt(const char *results);
/* Adopts the sources whose models have no artifact yet. */
void	adopt_sources(const struct mr_catalog *c, const char *results);
/* Artifacts of an unknown compiler count as made by that of DEVICE. */
void	trust(const struct mr_catalog *c, const struct mr_key *device,
	    const char *results);

#endif
