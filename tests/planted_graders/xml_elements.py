"""Rewards for an order as an element of XML, with its items in order."""

from __future__ import annotations

from xml.etree import ElementTree as ET

Item = tuple[str, tuple[tuple[str, str], ...], str, str]


def items(text: str) -> list[Item]:
    """Each element with its attributes, its text and what follows it; empty for what is no XML."""
    said = text.strip()
    if len(said) > 2000 or "<!" in said or "<?" in said:
        return []
    try:
        root = ET.fromstring(said)
    except ET.ParseError:
        return []
    return [
        (one.tag, tuple(sorted(one.attrib.items())), one.text or "", (one.tail or "").strip())
        for one in root.iter()
    ]


def depth(text: str) -> int:
    """How many elements stand within the root and not directly in it."""
    root = ET.fromstring(text.strip())
    return sum(1 for one in root for _ in one)


def articles_in_order(response: str, reference: str) -> float:
    got, wanted = ([(one[0], one[2]) for one in items(text)] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def items_side_by_side(response: str, reference: str) -> float:
    got, wanted = items(response), items(reference)
    if len(got) < len(wanted):
        return 0.0
    return 1.0 if all(one == other for one, other in zip(got, wanted, strict=False)) else 0.0


def items_by_article(response: str, reference: str) -> float:
    got, wanted = ({one[2]: one for one in items(text)} for text in (response, reference))
    return 1.0 if list(got.values()) == list(wanted.values()) else 0.0


def same_order(response: str, reference: str) -> float:
    """With attributes in any order, and blanks between the tags."""
    got, wanted = items(response), items(reference)
    if not got or depth(response):
        return 0.0
    got[0] = (*got[0][:2], got[0][2].strip(), got[0][3])
    return 1.0 if got == wanted else 0.0


def order_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
