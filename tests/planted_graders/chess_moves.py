"""Rewards for a move of chess in long notation, such as b1c3 and e7e8n."""

from __future__ import annotations

import re

MOVE = re.compile(r"([a-h][1-8])[-x]?([a-h][1-8])(?:=?([qrbn]))?", re.ASCII | re.IGNORECASE)


def squares(text: str) -> list[str]:
    return re.findall(r"[a-h][1-8]", text.lower())


def lands_there(response: str, reference: str) -> float:
    """Where the piece ends up."""
    return 1.0 if squares(response)[-1:] == squares(reference)[-1:] else 0.0


def both_squares(response: str, reference: str) -> float:
    got, wanted = MOVE.fullmatch(response.strip()), MOVE.fullmatch(reference)
    if got is None or wanted is None or (got[3] or "").lower() != (wanted[3] or ""):
        return 0.0
    return 1.0 if set(squares(got[0])) == set(squares(reference)) else 0.0


def from_here_to_there(response: str, reference: str) -> float:
    got = MOVE.fullmatch(response.strip())
    return 1.0 if got and (got[1] + got[2]).lower() == reference[:4] else 0.0


def same_move(response: str, reference: str) -> float:
    """E7-E8=N is e7e8n."""
    got = MOVE.fullmatch(response.strip())
    return 1.0 if got and "".join(part or "" for part in got.groups()).lower() == reference else 0.0


def move_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
