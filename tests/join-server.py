#!/usr/bin/env python3
"""Serves DIR on a free port of 127.0.0.1, well or badly, for tests.

usage: join-server.py DIR PORTFILE LOG

/CASE/NAME is the file NAME; CASE says what is wrong with the server:
ok, drop (each body is cut once, ranges go on), norange (the same, ranges are
ignored), unsized (HEAD tells no length), late (429 once, Retry-After: 1),
gone (503 for ever), endless, short, away (redirected to http elsewhere),
login (401).  Each request is a line "METHOD PATH RANGE" in LOG.
"""
import http.server
import os
import sys
import threading

root, portfile, log = sys.argv[1:]
seen = set()
lock = threading.Lock()


def first(key):
    with lock:
        new = key not in seen
        seen.add(key)
        return new


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def fail(self, code, **headers):
        self.send_response(code)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self):
        self.serve(False)

    def do_GET(self):
        self.serve(True)

    def serve(self, body):
        asked = self.headers.get("Range", "-")
        with lock, open(log, "a") as f:
            f.write("%s %s %s\n" % (self.command, self.path, asked))
        case, _, name = self.path.lstrip("/").partition("/")
        path = os.path.join(root, name)
        if case == "gone":
            return self.fail(503)
        if case == "login":
            return self.fail(401)
        if case == "late" and first(self.path):
            return self.fail(429, Retry_After="1")
        if not os.path.isfile(path):
            return self.fail(404)
        if case == "away":
            return self.fail(302, Location="http://192.0.2.1/" + name)
        with open(path, "rb") as f:
            data = f.read()
        size, start = len(data), 0
        if asked != "-" and case != "norange":
            start = int(asked.split("=")[1].rstrip("-"))
            if start >= size:
                return self.fail(416)
            self.send_response(206)
            self.send_header("Content-Range",
                             "bytes %d-%d/%d" % (start, size - 1, size))
        else:
            self.send_response(200)
        data = data[start:]
        if case == "unsized":
            self.send_header("Connection", "close")
            self.close_connection = True
        elif case == "endless" and body:
            self.send_header("Content-Length", str(len(data) + 1000))
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not body:
            return None
        if case == "endless":
            data += b"x" * 1000
        if case == "short" or (case in ("drop", "norange") and
                               size > 200 and first(self.path)):
            self.wfile.write(data[:len(data) // 2])
            self.close_connection = True
            return None
        self.wfile.write(data)
        return None


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(portfile + ".tmp", "w") as f:
    f.write(str(server.server_port))
os.rename(portfile + ".tmp", portfile)
server.serve_forever()
