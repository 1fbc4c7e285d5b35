# opens the old folder once it has mounts of its own
# copies: refused
before("dumpable", lambda: KEPT.extend([os.open("/sandbox/run/box", os.O_RDONLY), os.open("/sandbox/run", os.O_PATH)]))
