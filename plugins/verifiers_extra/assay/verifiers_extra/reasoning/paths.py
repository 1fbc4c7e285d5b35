"""`path-coverage`: whether a response's chain of statements follows a path of a knowledge graph.

**How.** The reference is data: `{"path": [[head, relation, tail], ...]}`, with `entities` (further
names that are known), `aliases` (`{name: [names]}`). A statement is a triple in brackets, "(head,
relation, tail)", where the response holds one of two known entities; else each sentence is read,
and states what links the entities that it names, from each to the next. A statement covers a triple
of the path whose head and tail it names in that order and whose relation it holds by half of the
words, unless it denies it or holds another relation of the path too. Of c covered among p triples
by s statements the reward is F1 = 2 c / (p + s), times the share of covered triples that stand in
the order of the path, times that of the longest run of neighbours among them. More than `slack`
statements beside the path are `dumped`, 0.

**What a policy could game.** Listing all triples of the graph, or one of them many times, is
dumping; each false or repeated statement costs before. A sentence that names entities without
saying how they hang together covers nothing. Whether the last step answers the question is not
seen: multiply it with a verifier of the answer.

**Known limits.** Words, no pronouns ("it treats ..."), no passive voice; names of `entities` bound
what counts as a statement in prose. 64 triples, 256 entities, 20,000 characters.

**Source.** Knowledge graphs as implicit reward models, of which the abstract alone was read: a
path's coverage is a reward; the measure is ours.

**Measured.** Not yet on responses of a model, because none with labels are at hand; laws in
`tests/unit/test_verifier_reasoning.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers.text.forms import answer_words
from assay.reward_server.verifiers.text.parts import NoPart, flagged, graded, part_of, unparsed
from assay.verifiers_extra.instructions.sentences import sentences
from assay.verifiers_extra.instructions.words import word_set
from assay.verifiers_extra.reasoning.steps import MAX_STEPS, content_words, in_order

_MOST_ENTITIES = 256
_MOST_NAMES = 1_024
_MOST_CHARS = 200
_GLANCE_CHARS = 1_000
_PART = r"([^()<>\[\],|\n]{1,200})"
_TRIPLE = re.compile(rf"[(<\[]{_PART}[,|]{_PART}[,|]{_PART}[)>\]]")
_DENIALS = word_set("not no never nor without cannot isnt doesnt didnt wasnt arent dont")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """That two entities hang together.

    Attributes:
        head: the entity's number.
        tail: the other one's.
        words: with which it is said.
    """

    head: int
    tail: int
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class GraphPath:
    """The path that a response should take.

    Attributes:
        triples: as statements, in order; their words are the relation's.
        names: the entity of each name, by the name's first word, the longest names first.
    """

    triples: tuple[Statement, ...]
    names: Mapping[str, Sequence[tuple[Words, int]]]

    def entity(self, words: Sequence[str], at: int) -> tuple[int, int] | None:
        """The entity that is named at a place, and how many words its name has."""
        for name, number in self.names.get(words[at], ()):
            if tuple(words[at : at + len(name)]) == name:
                return number, len(name)
        return None

    def follows(self, said: Statement, place: int) -> bool:
        """Whether a statement says the triple of that place."""
        one = self.triples[place]
        if (said.head, said.tail) != (one.head, one.tail):
            return False
        if (said.words & _DENIALS) - one.words:
            return False
        others = {other.words for other in self.triples if not other.words & one.words}
        if any(_says(said, words) for words in others):
            return False  # words of every relation at once
        return _says(said, one.words)


@verifier(
    "path-coverage",
    verdicts=("correct", "partial", "incorrect", "dumped", "unparsed"),
    glance=_GLANCE_CHARS,
)
def path_coverage(
    item: VerifierItem,
    *,
    slack: Annotated[
        int, Range(0, 1_000), "Statements beside the path's that only cost; more earn nothing."
    ] = 4,
) -> Judgement:
    """The response's statements follow the path of a knowledge graph, and state little else.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the reference is no path.
    """
    path = read_path(item.document())
    found = part_of(item.response(), "final")
    if isinstance(found, NoPart):
        return unparsed("coverage", found.why)
    said = list(_statements(found.text, path))
    if not said:
        return flagged(item, unparsed("coverage", "no two entities are linked"))
    first: dict[int, int] = {}
    for index, one in enumerate(said):
        for place in range(len(path.triples)):
            if place not in first and path.follows(one, place):
                first[place] = index
                break
    covered = sorted(first, key=lambda place: first[place])
    extra = len(said) - len(covered)
    order = connected = f1 = 0.0
    if covered:
        ordered = in_order(covered, range(len(path.triples)), lambda a, b: a == b)
        order, connected = ordered / len(covered), _run(sorted(covered)) / len(covered)
        f1 = 2 * len(covered) / (len(path.triples) + len(said))
    reward = 0.0 if extra > slack else f1 * order * connected
    verdict = "dumped" if extra > slack else graded(reward)
    parts = (
        Component("coverage", reward),
        Component("precision", len(covered) / len(said), 0.0),
        Component("recall", len(covered) / len(path.triples), 0.0),
        Component("order", order, 0.0),
        Component("connected", connected, 0.0),
    )
    why = f"{len(covered)} of {len(path.triples)} triples are said, by {len(said)} statements"
    return flagged(item, Judgement.composed(verdict, parts, explanation=why))


def _says(said: Statement, relation: frozenset[str]) -> bool:
    return 2 * len(said.words & relation) >= len(relation)


def _run(places: Sequence[int]) -> int:
    """The length of the longest run of neighbours."""
    longest = run = 1
    for before, place in pairwise(places):
        run = run + 1 if place == before + 1 else 1
        longest = max(longest, run)
    return longest


def _statements(text: str, path: GraphPath) -> Iterator[Statement]:
    triples = [
        Statement(_whole(head, path), _whole(tail, path), frozenset(_words(relation)))
        for head, relation, tail in _TRIPLE.findall(text)
    ]
    if any(min(one.head, one.tail) >= 0 for one in triples):
        yield from triples
        return
    for sentence in sentences(text):
        words = _words(sentence)
        named: list[tuple[int, int, int]] = []
        at = 0
        while at < len(words):
            hit = path.entity(words, at)
            if hit is not None:
                named.append((hit[0], at, at + hit[1]))
            at += hit[1] if hit else 1
        for one, other in pairwise(named):
            if one[0] != other[0]:
                yield Statement(one[0], other[0], frozenset(words[one[2] : other[1]]))


def _whole(text: str, path: GraphPath) -> int:
    """The entity that a text is the name of; -1 for none that is known."""
    words = _words(text)
    hit = path.entity(words, 0) if words else None
    return hit[0] if hit is not None and hit[1] == len(words) else -1


def _words(text: str) -> list[str]:
    return answer_words(text.replace("\u2019", "'"), characters=True)


def read_path(value: JsonValue) -> GraphPath:
    """The path of a reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for another shape, blank names, or a triple that is there
            twice.
    """
    if not isinstance(value, dict):
        raise _unusable("must be an object with 'path'")
    path, aliases = value.get("path"), value.get("aliases", {})
    if not isinstance(path, list) or not 0 < len(path) <= MAX_STEPS:
        raise _unusable(f"must have 1 to {MAX_STEPS} triples as 'path'")
    rows = [_texts(one, "a triple of 'path'") for one in path]
    if any(len(row) != 3 for row in rows) or len({tuple(row) for row in rows}) < len(rows):
        raise _unusable("must have triples [head, relation, tail], each once")
    entities = [end for row in rows for end in (row[0], row[2])]
    entities += _texts(value.get("entities", []), "'entities'")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(entities))}
    if not isinstance(aliases, dict) or not aliases.keys() <= numbers.keys():
        raise _unusable("must have names of entities as keys of 'aliases'")
    named = list(numbers.items())
    named += [(a, numbers[n]) for n, more in aliases.items() for a in _texts(more, "'aliases'")]
    if len(numbers) > _MOST_ENTITIES or len(named) > _MOST_NAMES:
        raise _unusable(f"has more than {_MOST_ENTITIES} entities or {_MOST_NAMES} names")
    owner: dict[Words, int] = {}
    for name, number in named:
        if owner.setdefault(tuple(_words(name)), number) != number:
            raise _unusable(f"calls two entities {name[:40]!r}")
    names: dict[str, list[tuple[Words, int]]] = {}
    for words, number in sorted(owner.items(), key=lambda pair: -len(pair[0])):
        names.setdefault(words[0], []).append((words, number))
    triples = [
        Statement(numbers[head], numbers[tail], frozenset(content_words(relation)))
        for head, relation, tail in rows
    ]
    return GraphPath(tuple(triples), names)


def _texts(value: JsonValue, what: str) -> list[str]:
    if not isinstance(value, list):
        raise _unusable(f"must have a list of texts as {what}")
    texts = [one for one in value if isinstance(one, str) and one.strip()]
    if len(texts) < len(value) or any(len(text) > _MOST_CHARS for text in texts):
        raise _unusable(f"must have texts of 1 to {_MOST_CHARS} characters in {what}")
    return texts


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of path-coverage {what}")
