/* Which machines may be spoken to: decided before a packet leaves. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <err.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libssh/libssh.h>

#include "remote-compile.h"

enum { ADDRESS = 16 };	/* bytes of an address; IPv4 as IPv6-mapped */

/* the bytes of SA's address, IPv4 in its mapped form; 0 for another family */
static int
address(const struct sockaddr *sa, unsigned char out[ADDRESS])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof(v4));
		memcpy(out, mapped, sizeof(mapped));
		memcpy(out + sizeof(mapped), &v4.sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof(v6));
		memcpy(out, &v6.sin6_addr, ADDRESS);
	} else
		return 0;
	return 1;
}

/* is WORD a key's fingerprint, as ssh-keygen -l prints it? */
static int
fingerprint_ok(const char *word)
{
	return strncmp(word, "SHA256:", 7) == 0 && strlen(word) == 7 + 43 &&
	    strspn(word + 7, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/") == 43;
}

/* the address that WORD spells out in full; short forms, which stand for
 * others than one might think, are none */
static int
spelt(const char *word, unsigned char out[ADDRESS])
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, word, &v4.sin_addr) == 1)
		return address((const struct sockaddr *)&v4, out);
	return inet_pton(AF_INET6, word, &v6.sin6_addr) == 1 &&
	    address((const struct sockaddr *)&v6, out);
}

/* Does LIST, words that blanks separate, have this address? -1, and said, if
 * one of its words is no address (nor a fingerprint, where those may be). */
static int
in_list(const char *setting, const char *list, int fingerprints,
    const unsigned char want[ADDRESS])
{
	unsigned char have[ADDRESS];
	char *copy, *word, *rest;
	int found = 0;

	copy = mr_strdup(list);
	for (word = strtok_r(copy, " \t", &rest); word != NULL && found != -1;
	    word = strtok_r(NULL, " \t", &rest)) {
		if (fingerprints && fingerprint_ok(word))
			continue;
		if (!spelt(word, have)) {
			warnx("%s: \"%.80s\": wanted an address%s", setting,
			    word, fingerprints ? " or a SHA256: fingerprint" :
			    "");
			found = -1;
		} else if (memcmp(have, want, ADDRESS) == 0)
			found = 1;
	}
	free(copy);
	return found;
}

int
policy_denies_key(const char *fingerprint)
{
	const char *p;
	size_t n = strlen(fingerprint);

	for (p = o.denied; (p = strstr(p, fingerprint)) != NULL; p += n)
		if ((p == o.denied || p[-1] == ' ' || p[-1] == '\t') &&
		    strchr(" \t", p[n]) != NULL)
			return 1;
	return 0;
}

/* cuts [user@]host[:port] into parts; the port is 0 where none is given */
static int
cut(const char *name, char **user, char **host, uint64_t *port)
{
	const char *at, *h, *colon, *end;

	*user = *host = NULL;
	*port = 0;
	if (name[0] == '-' || name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789._:@%[]-")] != '\0')
		return -1;
	at = strrchr(name, '@');
	h = at == NULL ? name : at + 1;
	end = h + strlen(h);
	colon = strrchr(h, ':');
	if (h[0] == '[') {
		if ((end = strchr(h, ']')) == NULL ||
		    (end[1] != '\0' && end + 1 != colon))
			return -1;
		colon = end[1] == '\0' ? NULL : colon;
		h++;
	} else if (colon != NULL && strchr(h, ':') == colon) {
		end = colon;
	} else {
		colon = NULL;	/* an IPv6 address without a port */
	}
	if (end == h || h[0] == '-' || at == name || (colon != NULL &&
	    (mr_number(colon + 1, 65535, port) == -1 || *port == 0)))
		return -1;
	*host = mr_fmt("%.*s", (int)(end - h), h);
	if (at != NULL)
		*user = mr_fmt("%.*s", (int)(at - name), name);
	return 0;
}

struct ssh_session_struct *
policy_session(const struct device *d)
{
	/* with the machine's own instructions far faster than the others */
	static const char ciphers[] = "aes128-gcm@openssh.com,"
	    "aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr";
	char *user, *host, *dir, *slash;
	ssh_session s;
	uint64_t n;
	unsigned port;
	int no = 0, yes = 1;

	if (cut(d->name, &user, &host, &n) == -1) {
		warnx("device \"%.80s\": wanted [user@]host[:port]", d->name);
		return NULL;
	}
	if ((s = ssh_new()) == NULL)
		errx(MR_UNFIT, "out of memory");
	port = (unsigned)n;
	ssh_options_set(s, SSH_OPTIONS_PROCESS_CONFIG, &no);
	ssh_options_set(s, SSH_OPTIONS_NODELAY, &yes);
	ssh_options_set(s, SSH_OPTIONS_HOST, host);
	if (user != NULL)
		ssh_options_set(s, SSH_OPTIONS_USER, user);
	if (port != 0)
		ssh_options_set(s, SSH_OPTIONS_PORT, &port);
	ssh_options_set(s, SSH_OPTIONS_CIPHERS_C_S, ciphers);
	ssh_options_set(s, SSH_OPTIONS_CIPHERS_S_C, ciphers);
	if (o.config != NULL) {
		/* its folder stands for ~/.ssh */
		dir = realpath(o.config, NULL);
		if (dir == NULL)
			err(MR_UNFIT, "%s", o.config);
		if ((slash = strrchr(dir, '/')) != NULL)
			*slash = '\0';
		ssh_options_set(s, SSH_OPTIONS_SSH_DIR, dir);
		free(dir);
	}
	/* newer libraries would jump by themselves, and not tell */
	setenv("OPENSSH_PROXYJUMP", "1", 1);
	if (ssh_options_parse_config(s, o.config) != SSH_OK) {
		warnx("%s: ssh_config: %s", d->name, ssh_get_error(s));
		ssh_free(s);
		s = NULL;
	}
	free(user);
	free(host);
	return s;
}

/* what S has for an option, to OUT of N bytes; "" if nothing; -1 if longer */
static int
option(ssh_session s, enum ssh_options_e which, char *out, size_t n)
{
	char *v;
	int len;

	out[0] = '\0';
	if (ssh_options_get(s, which, &v) != SSH_OK)
		return 0;
	len = snprintf(out, n, "%s", v);
	ssh_string_free_char(v);
	return len < 0 || (size_t)len >= n ? -1 : 0;
}

/* where the session would go, by name; refuses what hides the address */
static int
destination(struct device *d)
{
	struct passwd *pw;
	ssh_session s;
	char proxy[8], *p;
	int status = MR_OK;

	s = policy_session(d);
	if (s == NULL)
		return MR_UNFIT;
	if (option(s, SSH_OPTIONS_PROXYCOMMAND, proxy, sizeof(proxy)) == -1 ||
	    (proxy[0] != '\0' && strcmp(proxy, "none") != 0)) {
		warnx("%s: ssh_config has a ProxyJump or ProxyCommand for it: "
		    "refused, since that hides which machine is reached",
		    d->name);
		status = MR_UNFIT;
	}
	if (option(s, SSH_OPTIONS_HOST, d->host, sizeof(d->host)) == -1 ||
	    option(s, SSH_OPTIONS_USER, d->user, sizeof(d->user)) == -1) {
		warnx("%.80s: the name of its host or user is too long",
		    d->name);
		status = MR_UNFIT;
	}
	/* as known_hosts has it */
	for (p = d->host; *p != '\0'; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
	if (ssh_options_get_port(s, &d->port) != SSH_OK || d->port == 0)
		d->port = 22;
	if (d->user[0] == '\0' && (pw = getpwuid(getuid())) != NULL)
		snprintf(d->user, sizeof(d->user), "%s", pw->pw_name);
	ssh_free(s);
	return status;
}

/* Of the addresses AI: none may be denied, the first that is allowed is
 * taken. */
static int
choose(struct device *d, const struct addrinfo *ai)
{
	unsigned char a[ADDRESS];
	char text[sizeof(d->address)], all[512] = "";
	size_t n;
	int in;

	d->salen = 0;
	for (; ai != NULL; ai = ai->ai_next) {
		if (!address(ai->ai_addr, a) || getnameinfo(ai->ai_addr,
		    ai->ai_addrlen, text, sizeof(text), NULL, 0,
		    NI_NUMERICHOST) != 0)
			continue;
		n = strlen(all);
		snprintf(all + n, sizeof(all) - n, "%s%s", n == 0 ? "" : " ",
		    text);
		if ((in = in_list("DENY_DEVICES", o.denied, 1, a)) != 0) {
			if (in == 1)
				warnx("%s: %s is in DENY_DEVICES: nothing was "
				    "sent to it", d->name, text);
			return MR_UNFIT;
		}
		if ((in = in_list("ALLOWED_DEVICES", o.allowed, 0, a)) == -1)
			return MR_UNFIT;
		if (in == 1 && d->salen == 0) {
			memcpy(&d->sa, ai->ai_addr, ai->ai_addrlen);
			d->salen = ai->ai_addrlen;
			snprintf(d->address, sizeof(d->address), "%s", text);
		}
	}
	if (d->salen > 0)
		return MR_OK;
	warnx("%s: is %s, which ALLOWED_DEVICES (%s) does not have: add it "
	    "there if that machine may compile", d->name, all, o.allowed);
	return MR_UNFIT;
}

int
policy_check(struct device *d)
{
	struct addrinfo hints, *ai;
	char port[16];
	int rc;

	rc = destination(d);
	if (rc != MR_OK)
		return rc;
	memset(&hints, 0, sizeof(hints));
	hints.ai_socktype = SOCK_STREAM;
	snprintf(port, sizeof(port), "%u", d->port);
	rc = getaddrinfo(d->host, port, &hints, &ai);
	if (rc != 0) {
		d->salen = 0;
		return MR_AGAIN;
	}
	rc = choose(d, ai);
	freeaddrinfo(ai);
	return rc;
}

void
policy_print(const struct device *d, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (d[i].salen > 0)
			fprintf(stderr, "device %s: %s@%s port %u, %s\n",
			    d[i].name, d[i].user, d[i].address, d[i].port,
			    o.root);
	fprintf(stderr, "allowed: %s; denied: %s\n", o.allowed,
	    o.denied[0] == '\0' ? "none" : o.denied);
}
