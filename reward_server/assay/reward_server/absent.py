"""Verifiers that a server may lack, and what brings them."""

from __future__ import annotations

from collections.abc import Mapping

from assay.clients.services import EXTRA_VERIFIERS, who_brings

_SANDBOX = "start the reward server with --sandbox-target to serve it"
_GENRM = "start the reward server with --genrm-target to serve it"

WHAT_BRINGS: Mapping[str, str] = {
    "code": _SANDBOX,
    "sql": _SANDBOX,
    "judge": _GENRM,
    "judge-attempt": _GENRM,
    "judge-refusal": _GENRM,
    "judge-pairwise": _GENRM,
    "judge-group": _GENRM,
    "reward-model": _GENRM,
    "prm": _GENRM,
    **{name: who_brings(name).removeprefix("; ") for name in EXTRA_VERIFIERS},
}
"""What to do, by the verifier's name."""


def hint(name: str) -> str:
    """What to install for a verifier or task of this name, to be put after a message."""
    return f"; {WHAT_BRINGS[name]}" if name in WHAT_BRINGS else who_brings(name)
