/* Is it the machine that it was? Host keys, strictly; sshd(8), "SSH_KNOWN_HOSTS
 * FILE FORMAT". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libssh/libssh.h>

#include "remote-compile.h"

/* SHA256:... of a key; the caller frees */
static char *
fingerprint(ssh_key key)
{
	unsigned char *hash;
	char *text, *copy;
	size_t n;

	if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash,
	    &n) != SSH_OK)
		return mr_strdup("unknown");
	text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, n);
	copy = mr_strdup(text == NULL ? "unknown" : text);
	ssh_string_free_char(text);
	ssh_clean_pubkey_hash(&hash);
	return copy;
}

/* Does a line `@revoked HOSTS TYPE BASE64` of PATH have this key? The library
 * skips such lines; which host they name does not matter here. */
static int
revoked_in(const char *path, const char *base64)
{
	static const char mark[] = "@revoked";
	char *line = NULL, *word, *rest;
	size_t room = 0;
	int i, found = 0;
	FILE *f;

	f = fopen(path, "re");
	while (f != NULL && !found && getline(&line, &room, f) != -1) {
		word = strtok_r(line, " \t\r\n", &rest);
		if (word == NULL || strcmp(word, mark) != 0)
			continue;
		for (i = 0; i < 3 && word != NULL; i++)
			word = strtok_r(NULL, " \t\r\n", &rest);
		found = word != NULL && strcmp(word, base64) == 0;
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return found;
}

/* the path of the user's known_hosts, or of the system's; caller frees */
static char *
known_hosts(ssh_session s, enum ssh_options_e which)
{
	char *v, *copy;

	if (ssh_options_get(s, which, &v) != SSH_OK)
		return mr_strdup("/etc/ssh/ssh_known_hosts");
	copy = mr_strdup(v);
	ssh_string_free_char(v);
	return copy;
}

/* how ssh-keygen names the host: [host]:port unless the port is 22 */
static char *
known_name(const struct device *d)
{
	return d->port == 22 ? mr_strdup(d->host) :
	    mr_fmt("[%s]:%u", d->host, d->port);
}

/* the fingerprint of the key of TYPE that PATH has for the host NAME, or NULL;
 * the caller frees */
static char *
known_as(const char *path, const char *name, enum ssh_keytypes_e type)
{
	struct ssh_knownhosts_entry *e;
	char *line = NULL, *print = NULL;
	size_t room = 0;
	FILE *f;

	f = fopen(path, "re");
	while (f != NULL && print == NULL && getline(&line, &room, f) != -1) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] == '#' || line[0] == '@' ||
		    ssh_known_hosts_parse_line(name, line, &e) != SSH_OK)
			continue;
		if (ssh_key_type(e->publickey) == type)
			print = fingerprint(e->publickey);
		ssh_knownhosts_entry_free(e);
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return print;
}

/* the command that takes the key of TYPE into FILE, a word of sh */
static char *
accept_command(const struct device *d, const char *type, const char *file)
{
	size_t n;

	type = strncmp(type, "ssh-", 4) == 0 ? type + 4 : type;
	n = strncmp(type, "ecdsa", 5) == 0 ? 5 : strlen(type);
	return mr_fmt("ssh-keyscan -p %u -t %.*s %s >>%s", d->port, (int)n,
	    type, link_quote(d->host), file);
}

/* what the server shows, and what the user's and the system's files are */
struct shown {
	ssh_key		 key;
	const char	*type;
	char		*print, *base64, *user, *global;
};

static void
refuse(const struct device *d, ssh_session s, enum ssh_known_hosts_e state,
    const struct shown *k)
{
	char *file, *name, *accept, *was;

	name = known_name(d);
	file = link_quote(k->user);
	accept = accept_command(d, k->type, file);
	switch (state) {
	case SSH_KNOWN_HOSTS_CHANGED:
		was = known_as(k->user, name, ssh_key_type(k->key));
		if (was != NULL)
			give_up(DEVICE, MR_UNFIT, "the host key has changed: "
			    "it is %s %s, %s has %s: if the device was "
			    "reflashed: ssh-keygen -f %s -R %s && %s", k->type,
			    k->print, k->user, was, file, link_quote(name),
			    accept);
		was = known_as(k->global, name, ssh_key_type(k->key));
		give_up(DEVICE, MR_UNFIT, "the host key has changed: it is "
		    "%s %s, %s has %s: if the device was reflashed: %s",
		    k->type, k->print, k->global,
		    was == NULL ? "another" : was, accept);
	case SSH_KNOWN_HOSTS_OTHER:
		give_up(DEVICE, MR_UNFIT, "the host key %s %s is of another "
		    "type than what is known for it: if it is right: %s",
		    k->type, k->print, accept);
	case SSH_KNOWN_HOSTS_UNKNOWN:
	case SSH_KNOWN_HOSTS_NOT_FOUND:
		give_up(DEVICE, MR_UNFIT, "the host key %s %s is not known: if "
		    "it is right: %s", k->type, k->print, accept);
	default:
		give_up(DEVICE, MR_UNFIT, "%s: %s", k->user, ssh_get_error(s));
	}
}

void
hostkey_check(const struct device *d, ssh_session s)
{
	enum ssh_known_hosts_e state;
	struct shown k;

	if (ssh_get_server_publickey(s, &k.key) != SSH_OK ||
	    ssh_pki_export_pubkey_base64(k.key, &k.base64) != SSH_OK)
		give_up(LINK, MR_AGAIN, "no host key: %s", ssh_get_error(s));
	k.type = ssh_key_type_to_char(ssh_key_type(k.key));
	k.print = fingerprint(k.key);
	k.user = known_hosts(s, SSH_OPTIONS_KNOWNHOSTS);
	k.global = known_hosts(s, SSH_OPTIONS_GLOBAL_KNOWNHOSTS);
	if (policy_denies_key(k.print))
		give_up(DEVICE, MR_UNFIT, "the host key %s is in DENY_DEVICES: "
		    "it is another machine than its address says", k.print);
	if (revoked_in(k.user, k.base64) || revoked_in(k.global, k.base64))
		give_up(DEVICE, MR_UNFIT, "the host key %s %s is revoked: do "
		    "not connect to this machine", k.type, k.print);
	state = ssh_session_is_known_server(s);
	if (state != SSH_KNOWN_HOSTS_OK)
		refuse(d, s, state, &k);
	free(k.user);
	free(k.global);
	free(k.print);
	ssh_string_free_char(k.base64);
	ssh_key_free(k.key);
}
