"""Verifiers that a server has only beside another service, and what to do to have them."""

from __future__ import annotations

from collections.abc import Mapping

_SANDBOX = "start the reward server with --sandbox-target to serve it"
_GENRM = "start the reward server with --genrm-target to serve it"

ELSEWHERE: Mapping[str, str] = {
    "code": _SANDBOX,
    "sql": _SANDBOX,
    "judge": _GENRM,
    "judge-pairwise": _GENRM,
    "judge-group": _GENRM,
    "reward-model": _GENRM,
    "prm": _GENRM,
}
"""What to do, by the verifier's name."""


def hint(name: str) -> str:
    """What to do to have a verifier or a task of this name, to be put after a message."""
    return f"; {ELSEWHERE[name]}" if name in ELSEWHERE else ""
