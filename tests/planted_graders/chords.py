"""Rewards for three chords, such as F#m7 or C/E; a root may be spelt in several ways."""

from __future__ import annotations

import re

STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
CHORD = re.compile(r"([A-G][#b]?)(maj7|m7|m|7|dim|sus4)?(?:/([A-G][#b]?))?")
APART = re.compile(r"\s*,\s*|\s+-\s+|-|\s+")
Chord = tuple[int, str, int | None]


def pitch(note: str) -> int:
    """From 0 for C to 11 for B."""
    return (STEPS[note[0]] + {"": 0, "#": 1, "b": -1}[note[1:]]) % 12


def chord(text: str) -> Chord | None:
    found = CHORD.fullmatch(text)
    if found is None:
        return None
    root, quality, bass = found.groups()
    return pitch(root), quality or "", pitch(bass) if bass else None


def chords(text: str) -> list[Chord | None]:
    return [chord(one) for one in APART.split(text.strip())]


def roots(response: str, reference: str) -> float:
    got, wanted = chords(response), chords(reference)
    if None in got:
        return 0.0
    return 1.0 if [one and one[0] for one in got] == [one and one[0] for one in wanted] else 0.0


def chords_without_bass(response: str, reference: str) -> float:
    got, wanted = (chords(re.sub(r"/[A-G][#b]?", "", text)) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def chords_in_one_spelling(response: str, reference: str) -> float:
    """maj7 and M7, min and m."""

    def spelt(text: str) -> list[tuple[int, str, int | None]]:
        made = []
        for found in re.finditer(r"([A-G][#b]?)([A-Za-z0-9]*)(?:/([A-G][#b]?))?", text):
            quality = found[2].replace("maj", "M").replace("min", "m")
            made.append((pitch(found[1]), quality.lower(), pitch(found[3]) if found[3] else None))
        return made

    if not all(map(re.compile(r"[A-G][\w#/]*").fullmatch, APART.split(response.strip()))):
        return 0.0
    return 1.0 if spelt(response) == spelt(reference) else 0.0


def same_chords(response: str, reference: str) -> float:
    """Db is C#."""
    got = chords(response)
    return 1.0 if None not in got and got == chords(reference) else 0.0


def chords_text(response: str, reference: str) -> float:
    return 1.0 if response.split() == reference.split() else 0.0
