/* What the files of lfs-fetch share. */
#ifndef LFS_FETCH_H
#define LFS_FETCH_H

#include <curl/curl.h>

#include "mr.h"

enum {
	MAX_STORES = 64, MAX_ENDPOINTS = 64, MAX_HOSTS = 64,
	MAX_LOADS = 8,			/* downloads at once */
	MAX_BATCH = 100,		/* objects in a batch call */
	MAX_ANSWER = 4 << 20,		/* bytes of a batch answer */
	MAX_SAID = 4096,		/* bytes read of an error body */
	MAX_HOPS = 5			/* redirects of one request */
};

#define NO_LOGIN "401, and git-credential has nothing for it"

/* a URL's scheme and host, what decides who may be asked and told what */
struct origin {
	char	*host;		/* lower case, ":port" unless the default */
	char	*name;		/* the same without the port */
	char	*user;		/* or NULL */
	int	 https, loopback;
};

/* a place that may have the objects; asked in the order of -e */
struct endpoint {
	char		*url;		/* without user or trailing slashes */
	struct origin	 origin;
	char		*dead;		/* why no object asks it, or NULL */
	int		 status;	/* what that means: MR_NO, ... */
	int		 skipped;	/* never asked: policy */
	int		 tries;		/* failed batch calls in a row */
	int64_t		 when;		/* do not ask before, ms */
	size_t		 max;		/* objects in one call */
};

/* a download action: where an object is, for a while */
struct link {
	char			*href;
	struct curl_slist	*header;	/* "Name: value" */
	int64_t			 expires;	/* ms; 0: not known */
};

/* an object under way */
struct part {
	int			 fd;		/* -1: not open */
	char			*path;		/* NULL: without a name */
	struct mr_out		 out;		/* if there is no store */
	uint64_t		 have;		/* bytes that are there */
	uint64_t		 begun;		/* of them, at the start */
	struct hasher		*hash;		/* of them */
	char			*buf[2];	/* filled and hashed in turn */
	size_t			 nbuf;		/* in buf[0], not yet written */
};

enum state {
	ASK,		/* wants a link from its endpoint */
	ASKED,		/* is in a batch call */
	READY,		/* has a link */
	LOAD,		/* is being downloaded */
	DONE, LOST
};

struct object {
	char		 oid[MR_HEX];
	uint64_t	 size;
	char		*path;		/* where to; NULL: standard output */
	const struct object	*twin;	/* an earlier one with the same oid */
	enum state	 state;
	size_t		 at;		/* the endpoint that is asked */
	int		 tries;		/* failures in a row of the download */
	uint64_t	 best;		/* bytes it has reached */
	int64_t		 when;		/* do nothing before, ms */
	int64_t		 busy;		/* since when another process has it */
	int		 relinked;	/* asked once more for a link */
	int		 norange;	/* this endpoint cannot resume */
	struct link	 link;
	struct part	 part;
	int		 status;	/* the worst of its endpoints */
	char		*story;		/* "HOST (404), HOST (410)", or */
	int		 here;		/* a fault of this machine */
};

/* the settings of this run, filled by main */
extern struct settings {
	char		*store[MAX_STORES];	/* the first is written to */
	size_t		 nstores;
	struct endpoint	 endpoint[MAX_ENDPOINTS];
	size_t		 nendpoints;
	char		*host[MAX_HOSTS];	/* may be asked and trusted */
	size_t		 nhosts;
	int		 quiet;
	int		 tries;			/* for each request */
	long		 wait;			/* stalled for so long: s */
} set;

/* ---- main.c ---- */

/* Object's name in a message: "OID PATH" or "OID"; overwritten by the next. */
const char	*name_of(const struct object *o);
/* warnx that takes the progress bar off first; a notice is not said with -q. */
void	say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void	notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- list.c ---- */

struct object	*object_new(const char *oid, uint64_t size, const char *path);
/* Reads the list of -i; NULL if a line of it is wrong. */
struct object	**read_list(size_t *n, struct mr_err *e);

/* ---- hash.c: a digest that is computed beside other work ---- */

struct hasher;

struct hasher	*hasher_new(void);
/* BUF must stay as it is until the next call. */
void	hasher_add(struct hasher *h, const void *buf, size_t n);
/* HEX may be NULL; frees H. */
void	hasher_end(struct hasher *h, char hex[MR_HEX]);

/* ---- store.c: the local stores, the way out ---- */

/* A descriptor of PATH if it holds O, hash checked, or -1; errno is 0 when it
 * could be read and is wrong. */
int	open_checked(const char *path, const struct object *o);
/* The same for O in one of the stores. */
int	store_find(const struct object *o);
/* STORE/objects/aa/bb/OID; the own store's incomplete/OID.KIND. The caller
 * frees. */
char	*stored(const char *store, const char *oid);
char	*incomplete(const char *oid, const char *kind);
/* Moves PATH to incomplete/OID.bad; that name or NULL; the caller frees. */
char	*aside(const char *path, const char *oid);
/* Copies FD to O's path or to standard output. */
int	deliver(const struct object *o, int fd, struct mr_err *e);

/* ---- part.c: an object under way ---- */

/* Opens and locks O's part, hashes what is there: 1, or 0: another process
 * has it, or -1. */
int	part_open(struct object *o, struct mr_err *e);
int	part_write(struct object *o, const char *buf, size_t n);
/* Was a whole part left by an earlier run? 1: it is delivered, 0, or -1. */
int	part_whole(struct object *o, struct mr_err *e);
/* Forgets what is there. */
int	part_reset(struct object *o);
/* Compares all bytes with the oid: 1, 0, or -1 with errno: they could not be
 * written. HEX is what they are. Ends the hash. */
int	part_holds(struct object *o, char hex[MR_HEX]);
/* Gives a whole part its name in the store and hands it to the output. */
int	part_commit(struct object *o, struct mr_err *e);
/* Moves a wrong body aside; its new name, or NULL; the caller frees. */
char	*part_bad(struct object *o);
/* Lets go of the part; its bytes stay for the next run. */
void	part_close(struct object *o);
/* Bytes of O that an earlier run left. */
uint64_t	left_over(const struct object *o);
/* Where a file without a name may be. */
const char	*temporary(void);

/* ---- room.c ---- */

/* Is there room for these objects, in the store and where they go? */
int	room(struct object *const o[], size_t n, struct mr_err *e);

/* ---- host.c: who may be asked, who gets credentials ---- */

/* Splits URL; -1 if it is not http(s) or has characters it must not have. */
int	origin_of(const char *url, struct origin *g, struct mr_err *e);
void	origin_free(struct origin *g);
/* Fills EP from the text of -e; a host not on the list marks it skipped. */
void	endpoint_init(struct endpoint *ep, const char *text);
int	listed(const struct origin *g);
/* May FROM (the endpoint, the hop before) send us to TO? */
int	may_go(const struct origin *from, const struct origin *to);
/* "user:password" from git-credential(1), asked once for each host, or NULL;
 * borrowed. */
const char	*credentials(const struct origin *g);

/* ---- batch.c: the batch call; git-lfs docs/api/batch.md ---- */

/* The body of a request; the caller frees. */
char	*batch_body(struct object *const o[], size_t n);
/* What the answer says of one object. */
struct answer {
	struct link	 link;		/* href NULL: CODE and TEXT say why */
	int64_t		 code;		/* 404 and the like; 0: nonsense */
	char		*text;		/* the caller frees */
};
/* Fills A[i] for O[i]. -1: the whole answer is of no use. */
int	batch_parse(const char *buf, size_t len, struct object *const o[],
	    size_t n, const struct origin *from, struct answer *a,
	    struct mr_err *e);
/* The "message" of an error body, or NULL; the caller frees. */
char	*batch_said(const char *buf, size_t len);
void	link_free(struct link *l);

/* ---- http.c: one request, redirects by hand ---- */

struct request {
	CURL		*curl;
	struct object	*o;		/* a download, or */
	struct endpoint	*ep;		/* a batch call of N objects */
	struct object	*asked[MAX_BATCH];
	size_t		 n;
	char		*url;
	struct origin	 origin;
	struct curl_slist	*header;	/* of this hop */
	char		*body, *range;
	int		 auth;			/* send credentials */
	int		 hops;
	char		 error[CURL_ERROR_SIZE];
	/* the answer */
	long		 code;
	int64_t		 retry_after;		/* s, -1: none */
	char		*location;
	char		*content_range;
	char		*text;			/* of an error or batch */
	size_t		 ntext;
	int		 overlong;
	int		 taken;			/* the body is being kept */
	int		 wrong;			/* it cannot be the object */
	int		 startover;		/* the range is of no use */
	int		 lost_write;		/* errno of our own disk */
};

/* Requests that are made but not sent; request_start sends. */
struct request	*request_batch(struct endpoint *ep, struct object *const o[],
		    size_t n);
struct request	*request_load(struct object *o, struct endpoint *ep);
void	request_start(struct request *r, CURLM *multi);
/* Does the answer send us elsewhere? */
int	redirected(const struct request *r, CURLcode rc);
/* Where a 3xx leads: 1 and R is ready to be started again, or -1. */
int	request_redirect(struct request *r, struct mr_err *e);
/* After a 401: 1 and R has credentials now, or 0. */
int	request_login(struct request *r);
void	request_free(struct request *r);

/* ---- way.c: an object's way through the endpoints ---- */

/* How long to wait after TRIES failures; RETRY_AFTER in seconds decides
 * unless it is -1. */
int64_t	pause_ms(int tries, int64_t retry_after);
/* Shows a wait that a person would notice. */
void	show_wait(const char *name, const char *why, int64_t ms, int tries);
/* Lets go of O's part, unless its bytes would be lost. */
void	let_go(struct object *o);
/* O has ended: it is not to be had (or this machine cannot take it). */
void	lose(struct object *o, int status, const char *why);
void	done(struct object *o);
/* Sends O to the first living endpoint from O->at on. */
void	settle(struct object *o);
/* This endpoint cannot serve O: on to the next. */
void	give_up(struct object *o, int status, const char *why);
/* The download failed for now. */
void	try_later(struct object *o, int64_t retry_after, const char *why);
/* What an HTTP status or a transport error means. */
int	over_quota(long code, const char *said);
int	passing(long code);
int	hopeless(CURLcode rc);
/* "404: what was said"; the caller frees. */
char	*code_and_text(long code, const char *said);

/* ---- ask.c, load.c, fetch.c ---- */

extern struct run {
	CURLM		*multi;
	struct object	*const *all;
	size_t		 n;
	size_t		 loads;		/* downloads under way */
	int		 asking;	/* a batch call is under way */
	struct mr_progress	*progress;
} run;

/* May links be asked for? They expire, so not long before their use. */
int	may_ask(int64_t now);
/* Starts a batch call, if one is due. */
void	ask(int64_t now);
void	batch_ended(struct request *r, CURLcode rc);
/* Starts the download of O, which has a link. */
void	load(struct object *o, int64_t now);
void	load_ended(struct request *r, CURLcode rc);
/* Downloads what is not in the stores; each object ends DONE or LOST. */
void	fetch(struct object *const o[], size_t n);

#endif
