# what a process may ask of itself
# ends: completed
for option, arguments, name in (
    (28, (0xFF, 0, 0, 0), "securebits"), (8, (1, 0, 0, 0), "keepcaps"),
    (4, (2, 0, 0, 0), "suidsafe"), (0x59616D61, (-1, 0, 0, 0), "ptracer"), (57, (1, 0, 0, 0), "io flusher"),
    (35, (1, 0, 0, 0), "mm"), (35, (13, 3, 0, 0), "mm exe"), (62, (1, 1, 1, 0), "core scheduling"),
    (24, (7, 0, 0, 0), "bounding set"), (22, (1, 0, 0, 0), "strict") if False else (3, (0, 0, 0, 0), "dumpable"),
):
    print(name, libc.prctl(option, *map(ctypes.c_ulong, arguments)), ctypes.get_errno(), flush=True)
if libc.prctl(27, 0, 0, 0, 0) & 0x2F:  # all but KEEP_CAPS, which an exec clears
    escaped("securebits", libc.prctl(27, 0, 0, 0, 0))
libc.prctl(36, 1, 0, 0, 0)  # orphans of its own come to it
libc.prctl(1, 9, 0, 0, 0)  # dies with its parent
libc.prctl(4, 0, 0, 0, 0)  # nobody may look
libc.prctl(38, 0, 0, 0, 0)
print("TRIED")
