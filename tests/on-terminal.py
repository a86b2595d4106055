"""Runs a command on a terminal of its own, as a person would; nobody types.

usage: on-terminal.py SECONDS COMMAND [ARGUMENT ...]
"""

import os
import pty
import select
import signal
import sys
import time

end = time.monotonic() + float(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
while True:
    ready = select.select([fd], [], [], max(0, end - time.monotonic()))[0]
    if not ready:
        os.kill(pid, signal.SIGKILL)
        shown += b"\nit waits\n"
        break
    try:
        piece = os.read(fd, 4096)
    except OSError:  # Linux: the other end is closed
        break
    if not piece:
        break
    shown += piece
sys.stdout.write(shown.decode(errors="replace").replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
