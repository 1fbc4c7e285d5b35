"""The root directory that programs see: small, read-only, in a mount namespace of its own.

It holds the system's /usr, /bin and /lib*, the languages' paths, six device nodes, a /proc of the
box's own process namespace, an /etc of our own, and one writable place: a tmpfs with a size and a
number of inodes, fresh for every run, with the working directory, /tmp and /dev/shm. Paths to show
beneath these, e.g. an interpreter below /tmp, are kept elsewhere and put there for every run.

Covered: files of the service and of other programs are absent.
Not covered: what the languages' paths hold is readable.
"""

from __future__ import annotations

import contextlib
import os
from _socket import sethostname
from collections.abc import Mapping, Sequence

from assay.sandbox.zygote import syscalls

WRITABLE = "/sandbox"  # Landlock sees the folder around a mount point, not the mount point
SCRATCH = f"{WRITABLE}/run"
TMP, SHM = f"{SCRATCH}/tmp", f"{SCRATCH}/shm"  # noqa: S108
TMP_LINK, SHM_LINK = "/tmp", "/dev/shm"  # noqa: S108  # of the new root
COMMANDS = f"{WRITABLE}/bin"  # links of ours, read-only as the root is
_KEPT = f"{WRITABLE}/shown"  # what is shown beneath them, in the root's own tmpfs
DEVICES = ("null", "zero", "full", "random", "urandom")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/certs",
)
_FILES = {
    "/etc/group": "root:x:0:\nsandbox:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_LINKS = {
    "/box": f"{SCRATCH}/box",
    "/mnt": f"{SCRATCH}/box",  # where programs that were written for other sandboxes put files
    "/home/user": f"{SCRATCH}/box",
    TMP_LINK: TMP,
    SHM_LINK: SHM,
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
_HIDING = "hidepid=invisible"


class HostPath:
    """A path of the host, opened before the host's tree went out of sight."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor


def open_sources(paths: Sequence[str]) -> list[HostPath]:
    """Opens what the new root will show; absent paths are left out.

    To be called while the process still has the rights to reach them.
    """
    sources: list[HostPath] = []
    for path in dict.fromkeys((*_SYSTEM, *_ETC, *paths)):
        if os.path.islink(path) or _beneath(path, [s.path for s in sources]):
            continue  # links are made again; what a parent brings is there already
        try:
            sources.append(HostPath(path, os.open(path, os.O_PATH | os.O_CLOEXEC)))
        except OSError:
            continue
    devices = [f"/dev/{name}" for name in DEVICES]
    return sources + [HostPath(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in devices]


def links() -> dict[str, str]:
    """Symbolic links of the host's top level that the new root has too, e.g. /bin."""
    return {path: os.readlink(path) for path in _SYSTEM if os.path.islink(path)}


def build(
    sources: Sequence[HostPath],
    system_links: dict[str, str],
    listed: Sequence[str] = (),
    commands: Mapping[str, str] | None = None,
    users: int = 1,
) -> list[str]:
    """Makes the new root and moves into it; returns what could not be done, for people.

    Args:
        sources: what it shows.
        system_links: the symbolic links of its top level.
        listed: folders on the way to the sources that may be listed; they hold nothing else.
        commands: links in the folder of commands, and where they lead.
        users: of programs, from 1000 on; all have one name.

    Raises:
        OSError: the namespaces do not allow it.
    """
    missing = []
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    base = "/tmp"  # noqa: S108  # only a place to mount on, in our own mount namespace
    syscalls.mount(
        "tmpfs", base, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755,size=4m"
    )
    for source in sources:
        _bind(source, base + _place(source.path))
    for path in _ways([source.path for source in sources]):
        # Passed through, and not listed but where an interpreter looks for modules.
        os.chmod(base + _place(path), 0o555 if path in listed else 0o111)
    for path, target in {**system_links, **_LINKS}.items():
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        if not os.path.lexists(base + path):
            os.symlink(target, base + path)
    os.chmod(f"{base}/home", 0o111)  # noqa: S103  # passed through, not listed
    for path, text in {**_FILES, "/etc/passwd": _passwd(users)}.items():
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        with open(base + path, "w") as file:
            file.write(text)
    os.makedirs(base + SCRATCH)
    os.mkdir(base + COMMANDS)
    for name, target in (commands or {}).items():
        os.symlink(target, f"{base}{COMMANDS}/{name}")
    os.mkdir(base + "/proc")
    try:
        mount_proc(base + "/proc")
    except OSError as error:
        missing.append(f"private-proc: {error}")
    syscalls.pivot_root(base)
    syscalls.make_read_only("/", recursive=False)
    sethostname("sandbox")
    return missing


def _passwd(users: int) -> str:
    lines = ["root:x:0:0:root:/:/bin/false"]
    lines += [f"sandbox:x:{1000 + n}:1000:sandbox:/box:/bin/sh" for n in range(users)]
    return "\n".join(lines) + "\n"


def _place(path: str) -> str:
    return _KEPT + path if _beneath(path, (TMP_LINK, SHM_LINK)) else path


def kept(sources: Sequence[HostPath]) -> dict[str, str]:
    """What to put into the scratch folder for every run, by its source."""
    found = {}
    for link, folder in ((TMP_LINK, TMP), (SHM_LINK, SHM)):
        for source in sources:
            if source.path.startswith(f"{link}/"):
                top = source.path.removeprefix(f"{link}/").partition("/")[0]
                found[f"{_KEPT}{link}/{top}"] = f"{folder}/{top}"
    return found


def open_processes() -> int:
    """A folder of all processes of the caller's own namespace, for the caller alone.

    In `mount_proc`'s, nobody sees what has made itself unreadable.
    """
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    syscalls.mount("proc", "/proc", "proc", flags, "hidepid=0")
    try:
        return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        syscalls.umount("/proc")


def mount_proc(target: str) -> None:
    """A /proc of the caller's own process namespace, in which users do not see one another."""
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    try:
        syscalls.mount("proc", target, "proc", flags, _HIDING)
    except OSError:
        syscalls.mount("proc", target, "proc", flags)


def _bind(source: HostPath, target: str) -> None:
    is_folder = os.path.isdir(f"/proc/self/fd/{source.descriptor}")
    os.makedirs(target if is_folder else os.path.dirname(target), exist_ok=True)
    if not is_folder:
        with open(target, "w"):
            pass
    syscalls.mount(
        f"/proc/self/fd/{source.descriptor}", target, "", syscalls.MS_BIND | syscalls.MS_REC
    )
    os.close(source.descriptor)
    if not source.path.startswith("/dev/"):
        syscalls.make_read_only(target, recursive=True)


def _ways(paths: Sequence[str]) -> set[str]:
    """The folders that only lead to what is shown, e.g. a home folder that holds a toolchain."""
    known = ("/", "/dev", "/etc")
    ways: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in known and not _beneath(above, paths):
            ways.add(above)
            above = above.rpartition("/")[0]
    return ways


def _beneath(path: str, parents: Sequence[str]) -> bool:
    return any(path == parent or path.startswith(parent + "/") for parent in parents)


def mount_scratch(size_bytes: int, inodes: int, user: int | None) -> int:
    """A fresh scratch folder for one run; returns the working directory's descriptor."""
    options = f"size={size_bytes},nr_inodes={inodes},mode=755"
    syscalls.mount("tmpfs", SCRATCH, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
    return make_folders(SCRATCH, user)


def make_folders(scratch: str, user: int | None) -> int:
    """The working directory and the places for temporary files, in an empty scratch folder.

    Only these belong to the program's user. The working directory is opened before the program
    runs, so
    that this folder is read afterwards, whatever the program does to its name.
    """
    for name in ("box", "tmp", "shm"):
        path = f"{scratch}/{name}"
        os.mkdir(path, 0o755)
        if user is not None:
            os.chown(path, user, user)
    return os.open(f"{scratch}/box", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def fresh_folders(
    size_bytes: int, inodes: int, user: int | None, group: int, places: Mapping[str, str]
) -> int:
    """The folders of a session's branch in place of those in sight; their parent, open."""
    with contextlib.suppress(OSError):
        syscalls.umount(SCRATCH)
    options = f"size={size_bytes},nr_inodes={inodes},mode=755"
    syscalls.mount("tmpfs", SCRATCH, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
    for name in ("box", "tmp", "shm"):
        os.mkdir(f"{SCRATCH}/{name}", 0o755)
        if user is not None:
            os.chown(f"{SCRATCH}/{name}", user, group)
    show_kept(places)
    return os.open(SCRATCH, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def resize_scratch(size_bytes: int) -> None:
    """Changes the size of the folders in sight."""
    flags = syscalls.MS_REMOUNT | syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("tmpfs", SCRATCH, "tmpfs", flags, f"size={size_bytes}")


def show_kept(places: Mapping[str, str]) -> None:
    """Puts what `kept` names into a fresh scratch folder; it goes with the folder."""
    for source, target in places.items():
        if os.path.isdir(source):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        syscalls.mount(source, target, "", syscalls.MS_BIND | syscalls.MS_REC)


def unmount_scratch() -> None:
    """Drops all that a run has written, at once, however deep it is."""
    syscalls.umount(SCRATCH)


def clear_folder(folder: int) -> None:
    """Empties an open folder where there is no tmpfs: no recursion, no long paths."""
    here, depth = os.dup(folder), 0
    while True:
        below = _clear_here(here)
        if below is not None:
            os.chmod(below, 0o700, dir_fd=here)
            there = os.open(below, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            depth += 1
        elif depth:
            there = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            depth -= 1
        else:
            os.close(here)
            return
        os.close(here)
        here = there


def _clear_here(folder: int) -> str | None:
    """Removes all but non-empty folders; returns one of these."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
                continue
            try:
                os.rmdir(entry.name, dir_fd=folder)
            except OSError:
                return entry.name
    return None
