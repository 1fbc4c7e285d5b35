import os
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for target in (0, -os.getpgid(0), -1):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP, signal.SIGCONT):
        if target == 0 and number == signal.SIGSTOP:
            continue
        try:
            os.kill(target, number)
        except OSError as error:
            print(target, number, error)
for pid in (1, os.getppid()):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 34, 64):
        try:
            os.kill(pid, number)
        except OSError as error:
            print(pid, number, error)
print("done")
