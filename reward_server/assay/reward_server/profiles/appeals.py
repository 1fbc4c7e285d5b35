"""Which items are drawn for an appeal, and what a fault says of one. Pure.

The draw is a keyed hash of prompt, response and reference: equal items get equal decisions, on
every server with the same key. Who does not know the key cannot tell which response is drawn, nor
write one that is not, whatever of the source he has read (BLAKE2b with a key, RFC 7693, section
2.9). What he can do: repeat a response to the letter, which is decided once.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Appeal, Fault, Hearing, VerifierItem

PROCESS_KEY = secrets.token_bytes(32)
"""The key where the operator gives none: other draws after each start."""
LEAST_KEY_CHARS = 16
_COMPONENT, _WHY, _VERDICT, _REWARD, _PROBABILITY = (
    *("appealed", "appeal", "first_verdict", "first_reward", "appeal_probability"),
)


def read_key(text: str | None) -> bytes:
    """The operator's key; that of this process where there is none.

    Raises:
        ConfigError: it is too short to be a secret.
    """
    if text is None:
        return PROCESS_KEY
    if len(text) < LEAST_KEY_CHARS:
        raise ConfigError(
            f"the key of appeals has {len(text)} characters; a secret has {LEAST_KEY_CHARS} or "
            "more: openssl rand -hex 32"
        )
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


def mark(key: bytes) -> str:
    """Tells one key from another and gives it away to nobody."""
    return hashlib.blake2b(b"mark", key=key, digest_size=4).hexdigest()


def is_drawn(key: bytes, component: str, item: VerifierItem, share: float) -> bool:
    """Whether an item is among the share, 0 to 1, of those that are asked about by chance."""
    text = component.encode() + b"\0" + (item.content() or b"")
    number = int.from_bytes(hashlib.blake2b(text, key=key, digest_size=8).digest(), "big")
    return number < share * 2.0**64


def facts(appeal: Appeal) -> dict[str, str]:
    """What the fault of a second verifier says of the appeal."""
    return {
        _COMPONENT: appeal.component,
        _WHY: "drawn" if appeal.drawn else "called",
        _VERDICT: appeal.first.verdict,
        _REWARD: repr(appeal.first.reward),
        _PROBABILITY: repr(appeal.probability),
    }


def failed_appeal(fault: Fault) -> Appeal | None:
    """The appeal whose second verifier had this fault; None where there was none."""
    said: Mapping[str, str] = fault.metadata
    component = said.get(_COMPONENT, "")
    if said.get("component") != f"{component}.appeal":
        return None
    try:
        first = Hearing("", "", said[_VERDICT], float(said[_REWARD]))
        return Appeal(component, first, None, said[_WHY] == "drawn", float(said[_PROBABILITY]))
    except (KeyError, ValueError):
        return None
