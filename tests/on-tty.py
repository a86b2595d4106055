"""Runs a command with a terminal as standard error; prints what it drew.

usage: on-tty.py COMMAND [ARGUMENT ...]
"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

leader, follower = pty.openpty()
fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
child = subprocess.Popen(sys.argv[1:], stderr=follower,
                         env=dict(os.environ, TERM="xterm"))
os.close(follower)
drawn = b""
while True:
    try:
        piece = os.read(leader, 4096)
    except OSError:  # Linux: the other end is closed
        break
    if not piece:
        break
    drawn += piece
sys.stdout.write(drawn.decode().replace("\r", "\n").replace("\033[K", ""))
sys.exit(child.wait())
