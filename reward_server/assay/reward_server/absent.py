"""Verifiers that a server may lack, and what brings them."""

from __future__ import annotations

from collections.abc import Mapping

from assay.clients.services import ASKED_SERVICES, EXTRA_VERIFIERS, who_brings

WHAT_BRINGS: Mapping[str, str] = {
    **{
        name: f"start the reward server with --{service}-target to serve it"
        for name, service in ASKED_SERVICES.items()
    },
    **{name: who_brings(name).removeprefix("; ") for name in EXTRA_VERIFIERS},
}
"""What to do, by the verifier's name."""


def hint(name: str) -> str:
    """What to install for a verifier or task of this name, to be put after a message."""
    return f"; {WHAT_BRINGS[name]}" if name in WHAT_BRINGS else who_brings(name)
