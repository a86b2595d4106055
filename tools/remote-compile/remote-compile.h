/* What the files of remote-compile share, grouped by file. */
#ifndef REMOTE_COMPILE_H
#define REMOTE_COMPILE_H

#include <sys/socket.h>

#include "mr.h"

/* what the command line says */
struct opts {
	const char	*devices, *results, *format, *id;
	const char	*job;		/* on a device: ID or ID@validate */
	const char	*version;	/* "": the model has an empty one */
	const char	*allowed;	/* addresses that may be connected to */
	const char	*denied;	/* addresses, fingerprints: never */
	const char	*config;	/* ssh_config; NULL: the user's */
	const char	*root;		/* the device root */
	int		 gpu, force, noversion, keep, validate;
	/* bounds and pauses, in seconds; retries after a transport fault */
	unsigned	 retries, pause, wait, limit, silence;
};
extern struct opts o;

/* ---- source.c: what is compiled is what was recorded ---- */

/* Loads the source record of the model and looks at names and sizes; the
 * caller frees if the status is 0. The bytes are hashed as they are sent, or
 * by hash_source. Where they differ, the record goes. */
int	load_source(struct mr_json *source);
int	hash_source(struct mr_json source);
/* The path of a staged file of the record; the caller frees. */
char	*source_path(struct mr_json f);
/* Is HEX its digest? If not, it is said and the record removed. */
int	source_holds(struct mr_json f, const char *hex);

/* ---- artifact.c: the product and its record ---- */

/* One compile: the key is made of the lines K, DEVICE's among them. */
struct work {
	struct mr_json	 source, identity;
	struct mr_key	 k, device;
	char		 key[MR_HEX];
	char		*record, *product;	/* paths */
};

/* Parses what a compiler says of itself into W; WHO says it. */
int	work_identity(struct work *w, const char *text, const char *who);
/* The key and the paths of W, once source and identity are there. */
void	work_key(struct work *w);
/* Is the product of this key here already? */
int	work_current(const struct work *w);
/* Before the product is renamed: the record goes. */
int	land_begin(const struct work *w);
/* Afterwards: the record is written. */
int	land_end(const struct work *w, const char *hex, uint64_t size);

/* ---- local.c: the transport to `models` on this machine ---- */

int	local_identity(void);
int	local_compile(void);
int	local_validate(void);

struct ssh_session_struct;	/* libssh */

/* ---- policy.c: which machines may be spoken to ---- */

struct device {
	const char	*name;		/* as DEVICES has it; of its own */
	char		 host[256], user[64], address[64];
	unsigned	 port;
	struct sockaddr_storage sa;	/* the address that was checked */
	socklen_t	 salen;
	struct shared	*sh;		/* with its child; attempt.c */
	int		 out;		/* status that left it out; 0: in */
	char		*why;		/* it is out, while that is unsaid */
};

/* A session with D's name and what ssh_config says of it; its owner frees. */
struct ssh_session_struct	*policy_session(const struct device *d);
/* Reads ssh_config, resolves, checks; says why not. Status MR_AGAIN when the
 * name does not resolve now, which it does not say. */
int	policy_check(struct device *d);
/* Is the host key with this fingerprint denied? */
int	policy_denies_key(const char *fingerprint);
/* Prints who is allowed and denied, once, before anything is written. */
void	policy_print(const struct device *d, size_t n);

/* ---- attempt.c: one child speaks to one device ---- */

/* What a failure concerns, and so what is to be tried next: the device again
 * (LINK), another one for all models of the run, another one for this model,
 * or nothing. */
enum scope { LINK, DEVICE, PAIR, MODEL };
/* Memory that parent and child share. */
struct shared {
	enum scope	scope;
	char		why[1024];
	int		started;	/* a job may be running there */
	unsigned	lost;		/* jobs that ended without a result */
	uint64_t	seen;		/* bytes of the log that were shown */
};
extern struct shared *sh;	/* the child's own */

/* Starts a child that runs WHAT with OUT (-1: ours) as its standard output;
 * returns its pid. */
pid_t	attempt(void (*what)(struct device *), struct device *d, int out);
/* Ends the child with STATUS; printf form of why. */
void	give_up(enum scope scope, int status, const char *fmt, ...)
	    __attribute__((noreturn, format(printf, 3, 4)));
/* From now on, SECONDS of silence end the child, and WHAT is named. */
void	phase(const char *what, unsigned seconds);
/* Something was heard: the seconds begin again. */
void	heard(void);

/* ---- link.c: an SSH session with one agent on it; libssh ---- */

/* Connects, checks the host key, authenticates, starts the agent; gives up
 * by itself. One link in a process. */
void	link_open(struct device *d);
void	link_close(void);
/* Sends a line. */
void	link_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Reads a line whose first word is WORD and returns the rest, which the next
 * call overwrites; what else may come is dealt with. */
char	*link_expect(const char *word);
/* The same, any line: notices are shown, errors give up. */
char	*link_line(void);
void	link_write(const void *buf, size_t n);
/* What has come of the bytes that follow a line, at most N; never none. */
size_t	link_read(const char **bytes, size_t n);
/* S quoted for sh; gives up on a newline. The caller frees. */
char	*link_quote(const char *s);

/* ---- hostkey.c: is it the machine that it was? ---- */

/* Gives up unless the key is known, not revoked and not denied. */
void	hostkey_check(const struct device *d, struct ssh_session_struct *s);

/* ---- upload.c, collect.c: what goes there and comes home ---- */

enum {
	MARGIN = 64 << 20,	/* bytes that are to stay free on a disk */
	FILES = 128		/* most that a compile may leave */
};
struct result {			/* of a compile, as the device tells it */
	int	 status;	/* of the compiler */
	struct file {
		char		name[160], hex[MR_HEX];
		uint64_t	size;
	}	 file[FILES];
	size_t	 n;
};

uint64_t	source_bytes(const struct work *w);
void	upload(const struct work *w);
/* Sends PATH unless NAME is there; 0 if its bytes are not WANT, but HEX. */
int	upload_file(const char *name, const char *path, uint64_t size,
	    const char *want, char hex[MR_HEX]);
/* Reads a small result, NUL added; NULL if it is not what the device hashed.
 * The caller frees. */
char	*collect_text(const struct file *f);
/* Lands the product; 0 if the device's copy is not what it hashed. */
int	collect(const struct work *w, const struct result *r);

/* ---- validate.c: an artifact that is tried on a device ---- */

enum { RESULT_MAX = 1 << 20 };	/* bytes of the result of a validation */

/* Loads the record of the artifact as SOURCE, and with it the version; the
 * caller frees if the status is 0. The bytes are hashed when they are used. */
int	trial_load(struct mr_json *source);
/* The key and the paths of W, once source and identity are there. */
void	trial_key(struct work *w);
/* Has this artifact passed with this compiler? */
int	trial_current(const struct work *w);
/* The name of the artifact, of the result: to be freed. */
char	*trial_artifact(void);
char	*trial_result(void);
/* Says that the artifact is not what its record says, but HEX; MR_NO. */
int	trial_spoiled(const struct work *w, const char *hex);
/* Writes the record made of the result TEXT; MR_NO if the model failed. What
 * is wrong is in E, unless the status is 0. */
int	trial_land(const struct work *w, const char *text, struct mr_err *e);

/* ---- job.c: one model on one device ---- */

/* The compile failed for good: the device forgets it. */
void	job_failed(void);

extern struct mr_json sources;	/* their record, checked */

/* Compiles or validates the model on D and lands what comes of it. These run
 * in a child. */
void	job_compile(struct device *d);
/* Prints the identity; the device's state; stops the model's jobs. */
void	job_identity(struct device *d);
void	job_status(struct device *d);
void	job_cancel(struct device *d);

/* ---- pool.c: several devices ---- */

enum { DEVICES = 32 };
extern struct device pool[DEVICES];
extern size_t npool;

/* Reads DEVICES and checks each against the policy. */
int	pool_load(void);
/* Leaves D out: for this model (PAIR), or for the run, which is said once. */
void	pool_leave_out(struct device *d, enum scope scope, int status,
	    const char *why);
/* The worst of what left devices out. */
int	pool_status(void);
/* The status of an attempt's child, once it has ended. */
int	pool_await(pid_t pid);
/* Compiles the model on the next free device. */
int	pool_compile(void);

/* ---- ask.c: all devices at once ---- */

/* Prints the identity of the first that answers; leaves out who differs. */
int	ask_identity_of_all(void);
/* job_status or job_cancel on each. */
int	ask_each(void (*what)(struct device *));

#endif
