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

/* the command that takes the key of TYPE into FILE */
static char *
accept_command(const struct device *d, const char *type, const char *file)
{
	size_t n;

	type = strncmp(type, "ssh-", 4) == 0 ? type + 4 : type;
	n = strncmp(type, "ecdsa", 5) == 0 ? 5 : strlen(type);
	return mr_fmt("ssh-keyscan -p %u -t %.*s '%s' >>'%s'", d->port,
	    (int)n, type, d->host, file);
}

static void
refuse(const struct device *d, ssh_session s, enum ssh_known_hosts_e state,
    const char *type, const char *print)
{
	struct ssh_knownhosts_entry *old = NULL;
	char *file, *name, *accept, *was = NULL;

	file = known_hosts(s, SSH_OPTIONS_KNOWNHOSTS);
	name = known_name(d);
	accept = accept_command(d, type, file);
	if (state == SSH_KNOWN_HOSTS_CHANGED &&
	    ssh_session_get_known_hosts_entry(s, &old) ==
	    SSH_KNOWN_HOSTS_CHANGED && old != NULL)
		was = fingerprint(old->publickey);
	switch (state) {
	case SSH_KNOWN_HOSTS_CHANGED:
		give_up(DEVICE, MR_UNFIT, "the host key has changed: it is %s "
		    "%s, %s has %s: if the device was reflashed: "
		    "ssh-keygen -f '%s' -R '%s' && %s", type, print, file,
		    was == NULL ? "another" : was, file, name, accept);
	case SSH_KNOWN_HOSTS_OTHER:
		give_up(DEVICE, MR_UNFIT, "the host key %s %s is of another "
		    "type than %s has for it: if it is right: %s", type, print,
		    file, accept);
	case SSH_KNOWN_HOSTS_UNKNOWN:
	case SSH_KNOWN_HOSTS_NOT_FOUND:
		give_up(DEVICE, MR_UNFIT, "the host key %s %s is not known: if "
		    "it is right: %s", type, print, accept);
	default:
		give_up(DEVICE, MR_UNFIT, "%s: %s", file, ssh_get_error(s));
	}
}

void
hostkey_check(const struct device *d, ssh_session s)
{
	enum ssh_known_hosts_e state;
	char *print, *base64, *user, *global;
	const char *type;
	ssh_key key;

	if (ssh_get_server_publickey(s, &key) != SSH_OK ||
	    ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK)
		give_up(LINK, MR_AGAIN, "no host key: %s", ssh_get_error(s));
	type = ssh_key_type_to_char(ssh_key_type(key));
	print = fingerprint(key);
	user = known_hosts(s, SSH_OPTIONS_KNOWNHOSTS);
	global = known_hosts(s, SSH_OPTIONS_GLOBAL_KNOWNHOSTS);
	if (policy_denies_key(print))
		give_up(DEVICE, MR_UNFIT, "the host key %s is in DENY_DEVICES: "
		    "it is another machine than its address says", print);
	if (revoked_in(user, base64) || revoked_in(global, base64))
		give_up(DEVICE, MR_UNFIT, "the host key %s %s is revoked: do "
		    "not connect to this machine", type, print);
	state = ssh_session_is_known_server(s);
	if (state != SSH_KNOWN_HOSTS_OK)
		refuse(d, s, state, type, print);
	free(user);
	free(global);
	free(print);
	ssh_string_free_char(base64);
	ssh_key_free(key);
}
