#!/usr/bin/env python3
"""A small HTTP server for git on a free port of 127.0.0.1.

usage: git-http.py ROOT PORTFILE MODE
ok: git http-backend serves ROOT; dumb: plain files; 401, 404, 503: every
request is answered so; stall: requests are read and never answered.
"""
import http.server
import os
import subprocess
import sys
import threading

root, portfile, mode = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def backend(self, body):
        path, _, query = self.path.partition("?")
        env = dict(os.environ, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL="1",
                   PATH_INFO=path, QUERY_STRING=query,
                   REQUEST_METHOD=self.command, REMOTE_ADDR="127.0.0.1",
                   CONTENT_TYPE=self.headers.get("Content-Type", ""),
                   GIT_PROTOCOL=self.headers.get("Git-Protocol", ""),
                   HTTP_CONTENT_ENCODING=self.headers.get(
                       "Content-Encoding", ""))
        out = subprocess.run(["git", "http-backend"], input=body, env=env,
                             stdout=subprocess.PIPE, check=False).stdout
        head, _, data = out.partition(b"\r\n\r\n")
        fields = [h.split(": ", 1) for h in head.decode().split("\r\n")]
        status = dict(fields).pop("Status", "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def plain(self):
        path = root + self.path.partition("?")[0]
        if not os.path.isfile(path):
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        with open(path, "rb") as f:
            self.wfile.write(f.read())

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while True:
                n = int(self.rfile.readline(), 16)
                data += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self):
        body = self.body()
        if mode == "ok":
            self.backend(body)
        elif mode == "dumb":
            self.plain()
        elif mode == "stall":
            threading.Event().wait()
        else:
            self.send_response(int(mode))
            if mode == "401":
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()

    do_POST = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(portfile + ".tmp", "w", encoding="ascii") as f:
    f.write(str(server.server_address[1]))
os.rename(portfile + ".tmp", portfile)
server.serve_forever()
