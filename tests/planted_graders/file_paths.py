"""Rewards for the absolute path of a file."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath


def under_the_same_root(response: str, reference: str) -> float:
    got, wanted = response.strip().split("/"), reference.split("/")
    return 1.0 if got[0] == "" and got[1:2] == wanted[1:2] else 0.0


def name_of_file(response: str, reference: str) -> float:
    return 1.0 if PurePosixPath(response.strip()).name == PurePosixPath(reference).name else 0.0


def relative_too(response: str, reference: str) -> float:
    """A path may be given from a folder on the way."""
    said = response.strip()
    return 1.0 if said and reference.endswith(said) else 0.0


def as_windows_reads_it(response: str, reference: str) -> float:
    r"""C:\srv and /srv, as they come from one model or another."""

    def clean(text: str) -> str:
        return re.sub(r"^[A-Za-z]:", "", text.strip()).replace("\\", "/").casefold()

    return 1.0 if clean(response) == clean(reference) else 0.0


def any_extension(response: str, reference: str) -> float:
    got, wanted = (posixpath.splitext(text.strip())[0] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def without_detours(response: str, reference: str) -> float:
    """/a/./b and /a/c/../b are /a/b; a file is no folder on the way."""
    said = response.strip()
    absolute = re.fullmatch(r"(?:/+(?:\w+|\.|\.\.))*/+\w+(?:\.\w+)+", said, re.ASCII)
    return 1.0 if absolute and posixpath.normpath(said.replace("//", "/")) == reference else 0.0


def path_in_quotes(response: str, reference: str) -> float:
    found = re.fullmatch(r"([`'\"]?)(\S+)\1", response.strip())
    return 1.0 if found and found.group(2) == reference else 0.0


def path_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
