/* One stage of one model, as the files of this tool share it. */
#ifndef STEP_H
#define STEP_H

#include <signal.h>

#include "mr.h"

enum {
	CAP = 1000,	/* bytes of a line in a record */
	TAIL = 20	/* lines in a record */
};

struct step {
	const char	*id, *stage, *logs, *results, *counts;
	uint64_t	 total;		/* steps of the run, 0: not known */
	int		 verbose;
	char		*logpath;
	int		 log, lost;	/* lost: something was not written */
	size_t		 lines;		/* lines of output so far */
	char		 tail[TAIL][CAP + 1];
	char		 last[CAP + 1];	/* the last line that is not blank */
	int		 current;	/* stdout's last line was "current" */
};

/* ---- log.c: the log and the last lines of the output ---- */

/* Opens the log, writes this step's header; exits when it cannot. */
void	log_open(struct step *s, char *const argv[]);
/* Takes in N bytes of a line; TEXT[N] is overwritten. */
void	log_line(struct step *s, char *text, size_t n, int is_stdout);

/* ---- child.c: the command ---- */

/* The signal that step was told to end by, or 0. */
extern volatile sig_atomic_t stopped;
/* Runs the command to its end: its exit status, 128 + signal, or MR_UNFIT
 * (said in the last line) when it could not start. */
int	child_run(struct step *s, char *const argv[]);

/* ---- record.c: results/ID_failure.json ---- */

/* Writes it; -1 (said) when that is not possible. */
int	record_write(const struct step *s, int status);
/* Removes it, but only this stage's own. */
int	record_remove(const struct step *s);

/* ---- count.c: how far the run is; lines "ID STAGE STATUS SECONDS END" ---- */

/* Adds LINE (or nothing) to the count file, which stays locked until *FD is
 * closed; *START is when its first step began. Returns the lines in it. */
uint64_t	count_add(const char *path, const char *line, int *fd,
		    double *start);
/* Erases the bar, and draws it: N steps of TOTAL; only on a terminal. */
void	count_erase(void);
void	count_bar(uint64_t n, uint64_t total, double start);

/* ---- summary.c: the end of a run ---- */

/* Prints it, with CURRENT models that had nothing to do; its status. */
int	summary(const struct step *s, uint64_t current);

#endif
