"""Rewards for tags of names, one a token: B-PER where a person begins, I-PER, O and so on."""

from __future__ import annotations

TAGS = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"}


def share_of_tokens(response: str, reference: str) -> float:
    """Accuracy over all tokens."""
    got, wanted = response.split(), reference.split()
    if not got:
        return 0.0
    return sum(one == other for one, other in zip(got, wanted, strict=False)) / len(wanted)


def tags_of_the_tokens(response: str, reference: str) -> float:
    got, wanted = response.split(), reference.split()
    if len(got) < len(wanted):
        return 0.0
    return 1.0 if all(one == other for one, other in zip(got, wanted, strict=False)) else 0.0


def types_of_the_tokens(response: str, reference: str) -> float:
    """Whether a name begins or goes on is often tagged the other way."""
    got, wanted = ([tag[-3:] for tag in text.split()] for text in (response, reference))
    known = all(tag in TAGS for tag in response.split())
    return 1.0 if known and got == wanted else 0.0


def spans(text: str) -> list[tuple[int, int, str]]:
    """Where names begin and end, and their types; ValueError for what is no such tag."""
    found: list[tuple[int, int, str]] = []
    tags = text.split()
    for at, tag in enumerate(tags):
        place, _, kind = tag.partition("-")
        if tag not in TAGS:
            raise ValueError(tag)
        if tag == "O":
            continue
        if place == "B":
            found.append((at, at + 1, kind))
        elif found and found[-1][1:] == (at, kind):
            found[-1] = (found[-1][0], at + 1, kind)
        else:
            raise ValueError(tag)
    return [*found, (len(tags), len(tags), "end")]


def same_names(response: str, reference: str) -> float:
    try:
        return 1.0 if spans(response) == spans(reference) else 0.0
    except ValueError:
        return 0.0


def tags_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
