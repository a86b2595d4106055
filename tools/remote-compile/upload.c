/* The sources go up: what the device has already is not sent again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote-compile.h"

static struct mr_json
source_file(const struct work *w, size_t i)
{
	return mr_json_at(mr_json_get(w->source, "files"), i);
}

uint64_t
source_bytes(const struct work *w)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < mr_json_len(mr_json_get(w->source, "files")); i++)
		sum += (uint64_t)mr_json_int(source_file(w, i), "size", 0);
	return sum;
}

/* Sends the bytes of PATH from SKIP on, and hashes all of them on the way. */
static void
send_bytes(const char *path, uint64_t skip, uint64_t size, char hex[MR_HEX])
{
	static char buf[MR_BUF];
	struct mr_progress *p;
	struct mr_sha256 *h;
	uint64_t at = 0, most;
	char *what;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		give_up(MODEL, MR_UNFIT, "%s: %s", path, strerror(errno));
	what = mr_fmt("%s: upload", o.id);
	p = mr_progress_new(what, size, 0);
	mr_progress_have(p, (int64_t)skip);
	h = mr_sha256_new();
	for (; at < size; at += (uint64_t)n) {
		most = (at < skip ? skip : size) - at;
		n = mr_read(fd, buf, most > sizeof(buf) ? sizeof(buf) :
		    (size_t)most);
		if (n <= 0)
			give_up(MODEL, MR_UNFIT, "%s: became shorter", path);
		mr_sha256_add(h, buf, (size_t)n);
		heard();
		if (at < skip)
			continue;
		link_write(buf, (size_t)n);
		mr_progress_add(p, (uint64_t)n);
	}
	mr_sha256_end(h, hex);
	mr_progress_end(p);
	free(what);
	close(fd);
}

int
upload_file(const char *name, const char *path, uint64_t size,
    const char *want, char hex[MR_HEX])
{
	char *line;
	uint64_t skip;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		link_say("put %s %llu %s", name, (unsigned long long)size,
		    want);
		line = link_line();
		if (strcmp(line, "have") == 0)
			return 1;
		if (strncmp(line, "from ", 5) != 0 ||
		    mr_number(line + 5, size, &skip) == -1)
			give_up(DEVICE, MR_UNFIT, "it answered \"%.60s\" to an "
			    "upload", line);
		send_bytes(path, skip, size, hex);
		if (strcmp(hex, want) != 0)
			return 0;
		if (strcmp(link_line(), "ok") == 0)
			return 1;
	}
	give_up(LINK, MR_AGAIN, "%s: arrived spoiled twice", name);
}

static void
put(struct mr_json f)
{
	char *name, *path, hex[MR_HEX];

	name = mr_fmt("%s_%s.onnx", o.id, mr_json_str(f, "component", ""));
	path = source_path(f);
	if (!upload_file(name, path, (uint64_t)mr_json_int(f, "size", 0),
	    mr_json_str(f, "sha256", ""), hex) && !source_holds(f, hex))
		give_up(MODEL, MR_NO, "%s: not what was fetched", path);
	free(name);
	free(path);
}

void
upload(const struct work *w)
{
	size_t i;

	phase("upload", o.silence);
	for (i = 0; i < mr_json_len(mr_json_get(w->source, "files")); i++)
		put(source_file(w, i));
}
