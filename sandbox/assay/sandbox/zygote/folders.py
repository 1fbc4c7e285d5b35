"""Copies what a session has written into the fresh folders of its copy. Runs in the keeper.

Covered: any tree that a program can make: links are copied as links and never followed, hard links
stay so, holes stay holes, no depth recurses; modes, times and owners are kept.
Not covered: sockets and extended attributes, which are left out. Two descriptors are open for each
folder beside the one that is being copied.
"""

from __future__ import annotations

import os
import stat
from errno import ENXIO

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_Pair = tuple[int, int, os.stat_result]  # an open folder, its copy, and how it is


class Copying:
    """One copy; its hard links are known over all folders.

    Args:
        user, group: own the copies of what is not the keeper's own.
    """

    def __init__(self, user: int, group: int) -> None:
        self._user = user
        self._group = group
        self._linked: dict[int, tuple[int, str]] = {}  # by inode: open folder and name of the copy
        self._opened: list[int] = []
        self._last = -1  # the folder whose duplicate is the last of these

    def folder(self, source: int, target: int, skip: set[str]) -> None:
        """Copies what an open folder holds into another, but for some names of its own."""
        waiting = [(os.dup(source), os.dup(target), os.fstat(source))]
        try:
            while waiting:
                here, there, status = waiting[-1]
                below = self._level(here, there, skip)
                self._last = -1
                self._finish(there, status)  # what comes into its folders later leaves it so
                waiting.remove((here, there, status))
                os.close(here)
                os.close(there)
                waiting += below
                skip = set()
        finally:
            for here, there, _ in waiting:
                os.close(here)
                os.close(there)

    def _level(self, here: int, there: int, skip: set[str]) -> list[_Pair]:
        """Copies one folder's entries; its folders, still empty."""
        below: list[_Pair] = []
        try:
            for name in set(os.listdir(here)) - skip:
                found = os.stat(name, dir_fd=here, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    os.mkdir(name, 0o700, dir_fd=there)
                    inside = os.open(name, _FOLDER, dir_fd=here)
                    try:
                        below.append((inside, os.open(name, _FOLDER, dir_fd=there), found))
                    except BaseException:
                        os.close(inside)
                        raise
                else:
                    self._entry(name, here, there, found)
        except BaseException:
            for inside, copy, _ in below:
                os.close(inside)
                os.close(copy)
            raise
        return below

    def close(self) -> None:
        """Closes what was kept open for hard links."""
        for descriptor in self._opened:
            os.close(descriptor)

    def _entry(self, name: str, here: int, there: int, found: os.stat_result) -> None:
        if found.st_nlink > 1 and self._link(name, there, found):
            return
        if stat.S_ISREG(found.st_mode):
            self._file(name, here, there, found)
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=here), name, dir_fd=there)
            self._own(name, there, found)
        elif stat.S_ISFIFO(found.st_mode):
            os.mkfifo(name, dir_fd=there)
            os.chmod(name, found.st_mode & 0o7777, dir_fd=there)
            self._own(name, there, found)

    def _own(self, name: str, there: int, found: os.stat_result) -> None:
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.chown(name, self._user, self._group, dir_fd=there, follow_symlinks=False)
        os.utime(name, ns=times, dir_fd=there, follow_symlinks=False)

    def _link(self, name: str, there: int, found: os.stat_result) -> bool:
        known = self._linked.get(found.st_ino)
        if known is None:
            if self._last != there:
                self._opened.append(os.dup(there))
                self._last = there
            self._linked[found.st_ino] = (self._opened[-1], name)
            return False
        os.link(known[1], name, src_dir_fd=known[0], dst_dir_fd=there, follow_symlinks=False)
        return True

    def _file(self, name: str, here: int, there: int, found: os.stat_result) -> None:
        target = os.open(name, _NEW, 0o600, dir_fd=there)
        try:
            if found.st_size:
                source = os.open(name, _READ, dir_fd=here)
                try:
                    _copy_data(source, target, found)
                finally:
                    os.close(source)
            self._finish(target, found)
        finally:
            os.close(target)

    def _finish(self, target: int, found: os.stat_result) -> None:
        os.fchown(target, self._user, self._group)
        os.fchmod(target, found.st_mode & 0o7777)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy_data(source: int, target: int, found: os.stat_result) -> None:
    size = found.st_size
    os.ftruncate(target, size)
    start = 0
    while start < size:
        try:
            start = os.lseek(source, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == ENXIO:
                return  # only a hole is left
            raise
        end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < end:
            sent = os.sendfile(target, source, start, end - start)
            if sent == 0:
                return
            start += sent
