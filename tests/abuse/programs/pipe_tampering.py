import fcntl
import os
import signal
import socket

for descriptor in (0, 1, 2):
    for act in (
        lambda: fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC),
        lambda: fcntl.fcntl(descriptor, fcntl.F_SETOWN, 1),
        lambda: fcntl.fcntl(descriptor, 10, signal.SIGKILL),
        lambda: fcntl.fcntl(descriptor, 1031, 4096),
        lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB),
        lambda: socket.socket(fileno=os.dup(descriptor)).shutdown(socket.SHUT_RDWR),
        lambda: os.read(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK), 1 << 20),
        lambda: os.write(os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK), b"token-\n"),
        lambda: os.ftruncate(descriptor, 0),
    ):
        try:
            act()
        except OSError as error:
            print(descriptor, error)
