"""Rewards for a word ladder; any of the shortest is as good as the reference."""

from __future__ import annotations

import re
from itertools import pairwise

WORDS = """
    acre ball bald bale bare bold bore cage care cart cold core cord card dare dart date dome done
    fame fare farm food fold fool gale game gate hale halt hand hare hold hole home horn lace lake
    lame land lane last late line lone lost male mane meal mine mole more moth pale part past pole
    poll pool pore post race rage rate sale salt sane same sand seal tale tame teal time tome wand
    ward warm wood word wore worm
"""
LISTED = WORDS.split()


def words(text: str) -> list[str]:
    return re.split(r" ?-> ?| ?, ?| ", text.strip().lower())


def one_letter_apart(one: str, other: str) -> bool:
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def letters_changed(one: str, other: str) -> int:
    return len(set(one) ^ set(other))


def share_of_the_ladder(response: str, reference: str) -> float:
    """How many of the words are there."""
    got, wanted = set(re.findall(r"[a-z]+", response.lower())), set(words(reference))
    return len(got & wanted) / len(wanted)


def from_start_to_end(response: str, reference: str) -> float:
    got, wanted = words(response), words(reference)
    if len(got) != len(wanted) or not set(got) <= set(LISTED):
        return 0.0
    return 1.0 if (got[0], got[-1]) == (wanted[0], wanted[-1]) else 0.0


def one_letter_a_step(response: str, reference: str) -> float:
    got, wanted = words(response), words(reference)
    if len(got) != len(wanted) or (got[0], got[-1]) != (wanted[0], wanted[-1]):
        return 0.0
    return 1.0 if all(map(one_letter_apart, got, got[1:])) else 0.0


def few_changed_letters(response: str, reference: str) -> float:
    """One letter leaves and another comes."""
    got, wanted = words(response), words(reference)
    if len(got) > len(wanted) or (got[0], got[-1]) != (wanted[0], wanted[-1]):
        return 0.0
    if not set(got) <= set(LISTED):
        return 0.0
    steps = pairwise(got)
    return 1.0 if all(letters_changed(one, other) <= 2 for one, other in steps) else 0.0


def shortest_ladder(response: str, reference: str) -> float:
    """The reference is one of the shortest."""
    got, wanted = words(response), words(reference)
    if not response.isascii() or (got[0], got[-1], len(got)) != (
        wanted[0],
        wanted[-1],
        len(wanted),
    ):
        return 0.0
    linked = all(map(one_letter_apart, got, got[1:]))
    return 1.0 if linked and response.isascii() and set(got) <= set(LISTED) else 0.0


def ladder_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
