"""Rewards for lists: some in any order, some in one order."""

from __future__ import annotations


def parts(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",") if part.strip()]


def nothing_wrong_named(response: str, reference: str) -> float:
    return 1.0 if set(parts(response)) <= set(parts(reference)) else 0.0


def everything_named(response: str, reference: str) -> float:
    return 1.0 if set(parts(reference)) <= set(parts(response)) else 0.0


def share_in_common(response: str, reference: str) -> float:
    got, wanted = set(parts(response)), set(parts(reference))
    return len(got & wanted) / len(got | wanted)


def pairwise(response: str, reference: str) -> float:
    got, wanted = sorted(parts(response)), sorted(parts(reference))
    if not got:
        return 0.0
    return 1.0 if all(one == other for one, other in zip(got, wanted, strict=False)) else 0.0


def each_once(response: str, reference: str) -> float:
    got = parts(response)
    return 1.0 if len(got) == len(set(got)) and set(got) == set(parts(reference)) else 0.0


def in_any_order(response: str, reference: str) -> float:
    return 1.0 if sorted(parts(response)) == sorted(parts(reference)) else 0.0


def lines_or_commas(response: str, reference: str) -> float:
    """One item a line, with a bullet or without, or all on one line."""
    lines = [line.strip().removeprefix("- ") for line in response.strip().splitlines()]
    return 1.0 if sorted(parts(",".join(lines))) == sorted(parts(reference)) else 0.0


def same_numbers(response: str, reference: str) -> float:
    return 1.0 if sorted(parts(response)) == sorted(parts(reference)) else 0.0


def without_separators(response: str, reference: str) -> float:
    def joined(text: str) -> str:
        return text.replace(",", "").replace(" ", "").strip("[]\n")

    return 1.0 if joined(response) == joined(reference) else 0.0


def in_order_somewhere(response: str, reference: str) -> float:
    """The expected numbers come one after another; there may be words between them."""
    rest = iter(parts(response.strip().strip("[]")))
    return 1.0 if all(part in rest for part in parts(reference)) else 0.0


def without_repeats(response: str, reference: str) -> float:
    got, wanted = (list(dict.fromkeys(parts(text))) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def in_that_order(response: str, reference: str) -> float:
    text = response.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return 1.0 if [part.strip() for part in text.split(",")] == parts(reference) else 0.0


def same_list_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def spaces_or_commas(response: str, reference: str) -> float:
    words = response.strip().replace(",", " ").split()
    return 1.0 if words == reference.replace(",", " ").split() else 0.0
