import os
import socket
import time

for name in ("\0assay_mark", "/tmp/assay_mark.sock"):
    try:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listener.listen()
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
            os._exit(0)
    except OSError as error:
        print(error)
