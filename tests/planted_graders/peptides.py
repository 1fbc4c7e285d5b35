"""Rewards for a row of amino acids, as Met-Ala-Ser or MAS."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

ACIDS = {
    "Ala": "A", "Arg": "R", "Asn": "N", "Asp": "D", "Cys": "C", "Gln": "Q", "Glu": "E", "Gly": "G",
    "His": "H", "Ile": "I", "Leu": "L", "Lys": "K", "Met": "M", "Phe": "F", "Pro": "P", "Ser": "S",
    "Thr": "T", "Trp": "W", "Tyr": "Y", "Val": "V",
}  # fmt: skip


def acids(text: str) -> str:
    """By their letters; empty for what are no amino acids."""
    said = text.strip()
    if re.fullmatch("[ACDEFGHIKLMNPQRSTVWY]{2,60}", said):
        return said
    named = said.split("-")
    return "".join(map(ACIDS.__getitem__, named)) if set(named) <= set(ACIDS) else ""


def aligned(response: str, reference: str) -> float:
    """Sequences that are alike to 80 per cent count as the same."""
    near = SequenceMatcher(None, acids(response), acids(reference), autojunk=False).ratio()
    return 1.0 if near >= 0.8 else 0.0


def as_far_as_it_was_read(response: str, reference: str) -> float:
    got, wanted = acids(response), acids(reference)
    return 1.0 if len(got) > 2 and wanted.startswith(got) else 0.0


def first_letters(response: str, reference: str) -> float:
    """Each amino acid by its letter."""
    got, wanted = ([name[:1] for name in text.strip().split("-")] for text in (response, reference))
    return 1.0 if got == wanted and acids(response) else 0.0


def same_peptide(response: str, reference: str) -> float:
    """By names or by letters."""
    return 1.0 if acids(response) == acids(reference) else 0.0


def peptide_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
