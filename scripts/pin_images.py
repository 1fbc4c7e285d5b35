"""Writes the digests of other people's images into deploy/images.env: `make pin-images`.

A tag may name another image tomorrow, a digest may not. Docker asks the registry what each tag
names today (`docker buildx imagetools inspect`: the digest of the list of all platforms), and the
digest is written behind the tag, in the place of one that is there. All are asked before anything
is written: where one cannot be had the file stays as it is.

Exits with 0 when the digests are written, with 1 when one could not be had.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

IMAGES = Path(__file__).resolve().parent.parent / "deploy" / "images.env"
_LINE = re.compile(r"(?P<variable>ASSAY_\w+_IMAGE)=(?P<image>[^\s@]+)(?:@(?P<digest>\S+))?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TIMEOUT_S = 120


class UnknownDigestError(Exception):
    """Docker does not say which digest a tag has; the argument says why."""


def read_images(text: str) -> dict[str, tuple[str, str]]:
    """Image with its tag, and digest or the empty string, by the name of the variable.

    Raises:
        ValueError: a line is neither a comment nor an image.
    """
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or (match["digest"] and not _DIGEST.fullmatch(match["digest"])):
            raise ValueError(
                f"{line[:100]!r} is not VARIABLE=IMAGE:TAG or VARIABLE=IMAGE:TAG@sha256:..."
            )
        found[match["variable"]] = (match["image"], match["digest"] or "")
    return found


def pinned(text: str, digest_of: Callable[[str], str]) -> str:
    """The file with the digests of today.

    Raises:
        UnknownDigestError: one of them cannot be had.
        ValueError: as `read_images`.
    """
    images = read_images(text)
    digests = {image: digest_of(image) for image, _ in images.values()}
    lines = [
        f"{match['variable']}={match['image']}@{digests[match['image']]}" if match else line
        for line in text.splitlines()
        for match in (_LINE.fullmatch(line),)
    ]
    return "\n".join(lines) + "\n"


def ask_docker(image: str) -> str:
    """The digest that a registry gives for a tag.

    Raises:
        UnknownDigestError: it gives none.
    """
    command = ["docker", "buildx", "imagetools", "inspect", image]
    command += ["--format", "{{.Manifest.Digest}}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnknownDigestError(f"{image}: {error}") from error
    digest = done.stdout.strip()
    if done.returncode or not _DIGEST.fullmatch(digest):
        said = " ".join((done.stderr or done.stdout).split())[-300:]
        raise UnknownDigestError(f"{image}: {said or 'docker says nothing'}")
    return digest


def main() -> int:
    """Pins what deploy/images.env names."""
    try:
        text = pinned(IMAGES.read_text(), ask_docker)
    except (UnknownDigestError, ValueError) as error:
        print(f"pin_images: nothing was written: {error}", file=sys.stderr)
        return 1
    IMAGES.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
