# children that the keeper gets for its own: CLONE_PARENT, and shared memory, files, signals
# ends: completed died
VM, FS, FILES, SIGHAND, PARENT, UNTRACED, IO = 0x100, 0x200, 0x400, 0x800, 0x8000, 0x800000, 0x80000000
made = []
for flags in (0, FS, FILES, FS | FILES, PARENT, PARENT | FS | FILES, PARENT | UNTRACED | IO):
    pid, number = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    made.append((hex(flags), pid, number))
print(made, flush=True)
print("TRIED")
