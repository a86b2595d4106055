"""A real Git LFS server for tests: giftless on 127.0.0.1, a free port.

usage: giftless-server.py DIR

Objects are kept in DIR/storage; the port is written to DIR/port.  An endpoint
is http://127.0.0.1:PORT/ORG/REPO.git/info/lfs.  Anybody may read and write.
"""

import os
import sys
import warnings

from werkzeug.serving import WSGIRequestHandler, make_server

warnings.simplefilter("ignore")
from giftless.app import init_app  # noqa: E402


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *args):
        pass


def main():
    folder = os.path.abspath(sys.argv[1])
    app = init_app(additional_config={
        "LEGACY_ENDPOINTS": False,
        "AUTH_PROVIDERS": ["giftless.auth.allow_anon:read_write"],
        "TRANSFER_ADAPTERS": {"basic": {
            "factory": "giftless.transfer.basic_streaming:factory",
            "options": {
                "storage_class":
                    "giftless.storage.local_storage:LocalStorage",
                "storage_options": {"path": folder + "/storage"},
            },
        }},
    })
    server = make_server("127.0.0.1", 0, app, threaded=True,
                         request_handler=Quiet)
    with open(folder + "/port.new", "w") as f:
        f.write("%d\n" % server.server_port)
    os.rename(folder + "/port.new", folder + "/port")
    server.serve_forever()


main()
