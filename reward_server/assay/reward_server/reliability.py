"""Measured rates of the verifiers: ours, which come with the server, and those of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from assay.kit.errors import ConfigError
from assay.kit.reliability import Reliability, read_reliability

SHIPPED = Path(__file__).parent / "reliability.json"
"""What `python -m bench reliability` measured."""

Measured: TypeAlias = Mapping[str, tuple[Reliability, ...]]


def load_reliability(paths: Sequence[Path]) -> Measured:
    """What was measured of each verifier, sorted by domain.

    Args:
        paths: files besides the shipped one; a later one's entry of a verifier and domain counts.

    Raises:
        ConfigError: a file cannot be read, or has another form.
    """
    found: dict[str, dict[str, Reliability]] = {}
    for path in (SHIPPED, *paths):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: cannot read the measured rates: {error}") from None
        for name, one in read_reliability(text, str(path)):
            found.setdefault(name, {})[one.domain] = one
    return {name: tuple(kept[key] for key in sorted(kept)) for name, kept in found.items()}
