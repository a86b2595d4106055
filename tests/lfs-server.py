"""An LFS server that misbehaves on request, for tests.

usage: lfs-server.py DIR [CERT KEY]

Serves DIR/OID over http on 127.0.0.1 (with CERT and KEY over https as well);
the ports are written to DIR/port and DIR/port-tls.  An endpoint is
http://127.0.0.1:PORT/CASE, where CASE picks the misbehaviour; each request is
a line "METHOD PATH range=... secret=... auth=..." in DIR/log.
"""

import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
import time
from email.utils import formatdate

DIR = sys.argv[1]
LOCK = threading.Lock()
SEEN = {}
PORTS = {}
USER = "Basic dXNlcjpwYSBzczpx"  # user:pa ss:q
JSON = "application/vnd.git-lfs+json"


def first(key, times=1):
    """Is this one of the first TIMES requests for KEY?"""
    with LOCK:
        SEEN[key] = SEEN.get(key, 0) + 1
        return SEEN[key] <= times


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tls = False

    def log_message(self, *args):
        pass

    def note(self):
        h = self.headers
        with LOCK, open(os.path.join(DIR, "log"), "a") as f:
            f.write("%s %s range=%s secret=%s auth=%s host=%s\n" % (
                self.command, self.path, h.get("Range", "-"),
                h.get("X-Secret", "-"), h.get("Authorization", "-"),
                h.get("Host", "-")))

    def base(self, host="127.0.0.1", tls=None):
        tls = self.tls if tls is None else tls
        return "%s://%s:%d" % ("https" if tls else "http", host,
                               PORTS["tls" if tls else "plain"])

    def answer(self, code, body=b"", **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(code)
        headers.setdefault("Content_Length", len(body))
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def message(self, code, text, **headers):
        self.answer(code, {"message": text}, Content_Type=JSON, **headers)

    # ---- the batch call: POST /CASE/objects/batch ----

    def do_POST(self):
        asked = json.loads(
            self.rfile.read(int(self.headers["Content-Length"])))
        self.note()
        case = self.path.strip("/").split("/")[0]
        assert asked["operation"] == "download"
        assert "basic" in asked["transfers"]
        assert asked.get("hash_algo", "sha256") == "sha256"
        call = getattr(self, "batch_" + case.replace("-", "_"), None)
        if call is None:
            self.objects(case, asked)
        else:
            call(case, asked)

    def one(self, case, o, **more):
        action = {"href": "%s/%s/get/%s" % (self.base(), case, o["oid"]),
                  "header": {"X-Secret": "opensesame"}}
        action.update(more)
        if not os.path.exists(os.path.join(DIR, o["oid"])):
            return dict(o, error={"code": 404, "message": "no such object"})
        return dict(o, actions={"download": action})

    def objects(self, case, asked, **more):
        self.answer(200, {"transfer": "basic", "objects": [
            self.one(case, o, **more) for o in asked["objects"]]},
            Content_Type=JSON)

    def refuse(self, asked, code, text):
        self.answer(200, {"objects": [
            dict(o, error={"code": code, "message": text})
            for o in asked["objects"]]})

    def batch_gone(self, case, asked):
        self.message(404, "no such repository")

    def batch_o404(self, case, asked):
        self.refuse(asked, 404, "Object does not exist")

    def batch_o410(self, case, asked):
        self.refuse(asked, 410, "removed")

    def batch_o422(self, case, asked):
        self.refuse(asked, 422, "invalid")

    def batch_o503(self, case, asked):
        if first("o503", 2):
            self.refuse(asked, 503, "later")
        else:
            self.objects(case, asked)

    def batch_limit_seconds(self, case, asked):
        if first(case):
            self.message(429, "slow down", Retry_After=2)
        else:
            self.objects(case, asked)

    def batch_limit_date(self, case, asked):
        if first(case):
            self.message(429, "slow down", Retry_After=formatdate(
                time.time() + 3, usegmt=True))
        else:
            self.objects(case, asked)

    def batch_limit_past(self, case, asked):
        if first(case, 3):
            self.message(429, "slow down",
                         Retry_After="Thu, 01 Jan 1970 00:00:01 GMT")
        else:
            self.objects(case, asked)

    def batch_busy(self, case, asked):
        if first("busy", 2):
            self.answer(503, b"<html>busy</html>")
        else:
            self.objects(case, asked)

    def batch_down(self, case, asked):
        self.answer(503, b"x" * 10000)

    def batch_quota(self, case, asked):
        self.message(509, "bandwidth limit exceeded")

    def batch_quota403(self, case, asked):
        self.message(403, "This repository is over its data quota.")

    def batch_forbidden(self, case, asked):
        self.message(403, "not yours")

    def batch_login(self, case, asked):
        if self.headers.get("Authorization") != USER:
            self.answer(401, b"", WWW_Authenticate='Basic realm="x"')
        else:
            self.objects(case, asked)

    def batch_too_many(self, case, asked):
        if len(asked["objects"]) > 2:
            self.message(413, "too many objects")
        else:
            self.objects(case, asked)

    def batch_long_json(self, case, asked):
        self.answer(200, b'{"objects": [' + b"[]," * 2000000 + b"[]]}")

    def batch_endless_json(self, case, asked):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(b'{"objects": [')
            for _ in range(100000):
                self.wfile.write(b'{"oid": "", "size": 1}, ' * 100)
        except OSError:
            pass

    def batch_not_json(self, case, asked):
        self.answer(200, b"<html>Please log in</html>")

    def batch_empty(self, case, asked):
        self.answer(200, b"")

    def batch_no_list(self, case, asked):
        self.answer(200, {"objects": {"oid": "x"}})

    def batch_no_action(self, case, asked):
        self.answer(200, {"objects": asked["objects"]})

    def batch_not_there(self, case, asked):
        self.answer(200, {"objects": []})

    def batch_sha512(self, case, asked):
        self.answer(200, {"hash_algo": "sha512", "objects": [
            self.one(case, o) for o in asked["objects"]]})

    def batch_other_transfer(self, case, asked):
        self.answer(200, {"transfer": "tus", "objects": [
            self.one(case, o) for o in asked["objects"]]})

    def batch_other_size(self, case, asked):
        self.answer(200, {"objects": [
            self.one(case, dict(o, size=o["size"] + 1))
            for o in asked["objects"]]})

    def batch_hostile(self, case, asked):
        """What was asked for is there, among a heap of rubbish."""
        good = [self.one("ok", o) for o in asked["objects"]]
        bad = [None, 7, [], "x", {}, {"oid": None}, {"oid": "../../../x"},
               {"oid": "0" * 64, "size": -1, "actions": 3},
               self.one("ok", {"oid": "../log", "size": 1})]
        twice = [dict(o, error={"code": 404}) for o in asked["objects"]]
        self.answer(200, {"transfer": "basic",
                          "objects": bad + good + twice})

    def batch_file_href(self, case, asked):
        self.objects(case, asked, href="file:///etc/passwd")

    def batch_ftp_href(self, case, asked):
        self.objects(case, asked, href="ftp://127.0.0.1/x")

    def batch_http_href(self, case, asked):
        self.objects(case, asked, href="http://example.invalid/x")

    def batch_split_href(self, case, asked):
        self.objects(case, asked, href=self.base() + "/x\r\nX-Evil: 1")

    def batch_split_header(self, case, asked):
        self.objects(case, asked, header={"X-A": "b\r\nX-Evil: 1"})

    def batch_own_range(self, case, asked):
        """Headers that would change the framing are left out."""
        self.objects("ok", asked, header={
            "Range": "bytes=1-2", "Content-Length": "5", "Host": "evil",
            "Transfer-Encoding": "chunked", "X-Secret": "kept"})

    def batch_loop(self, case, asked):
        self.answer(307, b"", Location=self.path)

    def batch_moved(self, case, asked):
        self.answer(301, b"moved" * 2000, Location="/ok/objects/batch")

    def batch_away(self, case, asked):
        self.answer(302, b"", Location="https://evil.invalid/objects/batch")

    def batch_nowhere(self, case, asked):
        self.answer(302, b"")

    def batch_stall(self, case, asked):
        time.sleep(30)
        self.close_connection = True

    def batch_expires(self, case, asked):
        self.objects(case, asked, expires_in=1 if first(case) else 900)

    def batch_expires_at(self, case, asked):
        self.objects("ok", asked, expires_at="2001-01-01T00:00:00Z")

    def batch_expires_zero(self, case, asked):
        self.objects("ok", asked, expires_at="0001-01-01T00:00:00Z")

    # ---- the object: GET /CASE/get/OID ----

    def do_GET(self):
        self.note()
        case, _, oid = self.path.strip("/").split("/")[:3]
        self.file = os.path.join(DIR, os.path.basename(oid))
        call = getattr(self, "get_" + case.replace("-", "_"), None)
        if call is None:
            self.whole()
            return
        with open(self.file, "rb") as f:
            call(f.read())

    def start(self, size):
        """Where the range begins that was asked for, 0 without one."""
        want = self.headers.get("Range")
        if want is None:
            return 0
        at, end = want[len("bytes="):].split("-")
        assert int(end) == size - 1
        return int(at)

    def head(self, at, size):
        """The head of an answer with the bytes from AT on."""
        self.send_response(206 if at else 200)
        self.send_header("Content-Length", str(size - at))
        if at:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (
                at, size - 1, size))
        self.end_headers()

    def whole(self, body=None):
        with open(self.file, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            at = self.start(size)
            self.head(at, size)
            self.connection.sendfile(f, at)

    def cut(self, body, key, times=1):
        """Breaks off in the middle of the body, the first few times."""
        if not first(key, times):
            return False
        at = self.start(len(body))
        self.head(at, len(body))
        self.wfile.write(body[at:at + (len(body) - at) // 2])
        self.close_connection = True
        return True

    def get_cut(self, body):
        if not self.cut(body, self.path):
            self.whole(body)

    def get_short(self, body):
        self.cut(body, self.path, 1000)

    def get_norange(self, body):
        if not self.cut(body, self.path):
            self.answer(200, body)

    def get_unrange(self, body):
        if not self.cut(body, self.path):
            if self.headers.get("Range"):
                self.answer(416, b"no range", Content_Range="bytes */%d" %
                            len(body))
            else:
                self.whole(body)

    def get_badrange(self, body):
        if not self.cut(body, self.path):
            if self.headers.get("Range"):
                self.answer(206, body[7:], Content_Range="bytes 7-%d/%d" % (
                    len(body) - 1, len(body)))
            else:
                self.whole(body)

    def get_norangeheader(self, body):
        if not self.cut(body, self.path):
            at = self.start(len(body))
            self.answer(206 if at else 200, body[at:])

    def get_spoiltpart(self, body):
        """The first half is not the object's, the second is."""
        if first(self.path):
            self.cut(b"x" * len(body), "spoilt")
        else:
            self.whole(body)

    def get_churn(self, body):
        """The first half is spoilt and breaks off, for ever."""
        if self.start(len(body)):
            self.whole()
        else:
            self.head(0, len(body))
            self.wfile.write(b"x" * (len(body) // 2))
            self.close_connection = True

    def get_gone(self, body):
        self.message(404, "Not found")

    def get_removed(self, body):
        self.answer(410, b"")

    def get_teapot(self, body):
        self.answer(418, b"")

    def get_busyload(self, body):
        if first(self.path, 2):
            self.answer(503, b"busy" * 5000)
        else:
            self.whole(body)

    def get_limitload(self, body):
        if first(self.path):
            self.answer(429, b"", Retry_After=2)
        else:
            self.whole(body)

    def get_quotaload(self, body):
        self.message(403, "over its data quota")

    def get_expired(self, body):
        if first(self.path):
            self.message(403, "Request has expired")
        else:
            self.whole(body)

    def get_forbidden_load(self, body):
        self.answer(403, b"")

    def get_loginload(self, body):
        if self.headers.get("Authorization") != USER:
            self.answer(401, b"")
        else:
            self.whole(body)

    def get_wrong(self, body):
        self.answer(200, b"y" * len(body))

    def get_notfound(self, body):
        self.answer(200, b"Not found")

    def get_long(self, body):
        self.answer(200, body + b"!")

    def get_endless(self, body):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(body)
        except OSError:
            pass

    def get_chunked(self, body):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(0, len(body), 5000):
            piece = body[i:i + 5000]
            self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def get_stalled(self, body):
        self.head(0, len(body))
        self.wfile.write(body[:100])
        self.wfile.flush()
        time.sleep(30)
        self.close_connection = True

    def get_loris(self, body):
        self.head(0, len(body))
        try:
            for i in range(60):
                self.wfile.write(body[i:i + 1])
                self.wfile.flush()
                time.sleep(0.5)
        except OSError:
            pass
        self.close_connection = True

    def get_redirect(self, body):
        """To the same host: the action's headers go along."""
        self.answer(302, b"", Location="../../ok/get/" +
                    hashlib.sha256(body).hexdigest())

    def get_cross(self, body):
        """To another host and back: the action's headers stay behind."""
        self.answer(302, b"z" * 5000, Location=self.base("localhost") +
                    "/back/get/" + hashlib.sha256(body).hexdigest())

    def get_back(self, body):
        self.answer(307, b"", Location=self.base() + "/ok/get/" +
                    hashlib.sha256(body).hexdigest())

    def get_downgrade(self, body):
        self.answer(302, b"", Location=self.base(tls=False) + "/ok/get/" +
                    hashlib.sha256(body).hexdigest())

    def get_loopload(self, body):
        self.answer(302, b"", Location=self.path)

    def get_fileload(self, body):
        self.answer(302, b"", Location="file:///etc/passwd")

    def drip(self, body, seconds):
        """The whole takes so long."""
        at = self.start(len(body))
        self.head(at, len(body))
        step = len(body) // 50 + 1
        try:
            for i in range(at, len(body), step):
                self.wfile.write(body[i:i + step])
                time.sleep(seconds / 50)
        except OSError:
            pass
        self.close_connection = True

    def get_slow(self, body):
        self.drip(body, 2)

    def get_snail(self, body):
        self.drip(body, 14)


class TLSHandler(Handler):
    tls = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def publish(name, port):
    with open(os.path.join(DIR, name + ".new"), "w") as f:
        f.write("%d\n" % port)
    os.rename(f.name, os.path.join(DIR, name))


def main():
    plain = Server(("127.0.0.1", 0), Handler)
    PORTS["plain"] = plain.server_address[1]
    if len(sys.argv) > 2:
        tls = Server(("127.0.0.1", 0), TLSHandler)
        PORTS["tls"] = tls.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        tls.socket = context.wrap_socket(
            tls.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=tls.serve_forever, daemon=True).start()
        publish("port-tls", PORTS["tls"])
    publish("port", PORTS["plain"])
    plain.serve_forever()


main()
