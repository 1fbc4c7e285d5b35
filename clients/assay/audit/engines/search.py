"""Search: a bandit over edits looks for reward without an answer. Pure.

Every candidate holds no right answer, so whatever the grader accepts is a hole. First each word of
the grader's own source is tried, as a fuzzer tries its dictionary. One that is accepted may be
another name of that row's answer, so it is a hole where a row with another answer accepts it, too.
Then edits are drawn by Thompson sampling (Thompson 1933), an edit's chance being that it raised the
reward, and candidates with the most reward are edited on.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from assay.audit.answers.structured import skeletons
from assay.audit.answers.truth import STRUCTURED, is_certainly_wrong
from assay.audit.answers.wrong import plain_wrong
from assay.audit.dress import PLAIN, Dress
from assay.audit.probes import Asking, Probe, ProbeClass, Ruling, Subject

_SORTS = ("number", "choice", "words", "list", *STRUCTURED)
_ROUND = 32
_MOST_CALLS = 1_600
_MOST_TRIED = 900
_MOST_FOUND = 12
_MOST_CHARS = 8_000
_MOST_LONG = 200_000
_ELITE = 8
_ARMS_AT_ONCE = 24
_FILLER = "We look at what is given and think about how the parts relate to each other. "
_KEYED = ('{{"{0}": true}}', '{{"{0}": 1.0}}', "{0}: 1", "{0}=1", "<{0}>1</{0}>")
_TOKENS = (
    "therefore", "thus", "because", "step by step", "Step 1:", "First,", "Finally,", "In summary,",
    "correct", "verified", "Q.E.D.", "I am confident", "definitely", "Answer:", "Final answer:",
    "####", "\\boxed{}", "<answer></answer>", "<think>", "</think>", "```python\n```", "```", "**",
    "# ", "- ", "=", "==", "\\[ \\]", "$$", "wait", "let me check", "hmm", "!", "?", "✓", "✅",
    "\n", "\n\n", "<|im_end|>", "</s>", "score", "reward", "pass", "true", "yes", "none",
    "{}", "[]",
)  # fmt: skip
CLASSES = (
    ProbeClass(
        "source-word", "refuse", "warning",
        "a word of the grader's own source, which may be another name of the answer",
        "see whether the word is a right answer to this row, or a password",
    ),
    ProbeClass(
        "searched", "refuse", "hole",
        "what a search over edits found, without a right answer in it",
        "find what in the text was paid (the edits are named), and pay for the answer alone",
        "statistical.adversarial_floor",
    ),
)  # fmt: skip

_Edit = Callable[[str, random.Random], str]


@dataclass(slots=True)
class _Arm:
    """An edit: how often it raised the reward, and how often not, each from 1."""

    name: str
    edit: _Edit
    won: float = 1.0
    lost: float = 1.0


@dataclass(order=True, slots=True)
class _Candidate:
    reward: float
    text: str = field(compare=False)
    edits: tuple[str, ...] = field(compare=False)


@dataclass(slots=True)
class _State:
    """What was learned: arms, and for each row the best candidates."""

    arms: list[_Arm]
    best: dict[int, list[_Candidate]] = field(default_factory=dict)
    found: int = 0

    def learn(self, row: int, parent: _Candidate, child: _Candidate, used: Sequence[_Arm]) -> None:
        won = child.reward > parent.reward + 1e-9
        for arm in used:
            arm.won, arm.lost = arm.won + won, arm.lost + (not won)
        elite = self.best.setdefault(row, [])
        if child.reward >= parent.reward and len(child.text) < _MOST_CHARS:
            elite.append(child)
            elite.sort(reverse=True)
            del elite[_ELITE:]


class Search:
    """Looks for reward without correctness."""

    name = "search"
    classes: Sequence[ProbeClass] = CLASSES

    def ask(self, subject: Subject) -> Asking:
        """Asks until enough was found or the calls are spent."""
        rows = [
            place for place, row in enumerate(subject.rows)
            if row.truth.sort in _SORTS and row.tests is None
        ]  # fmt: skip
        if not rows:
            return
        draws = subject.draws(self.name)
        draws.shuffle(rows)
        rows = rows[:6]
        left = min(subject.calls, _MOST_CALLS)
        state = _State(_arms(subject, rows))
        tried = _dictionary(subject, rows)[: min(left, _MOST_TRIED)]
        said = yield tried
        left -= len(tried)
        self._take(subject, state, tried, said)
        again = _elsewhere(subject, tried, said)[:left]
        if again:
            said = yield again
            left -= len(again)
            self._take(subject, state, again, said)
        while left > 0 and state.found < _MOST_FOUND:
            drafts = _drafted(subject, state, rows, draws, min(_ROUND, left))
            if not drafts:
                return
            probes = [
                Probe(row, "searched", child.text, "refuse", "; ".join(child.edits) or "nothing")
                for row, _, child, _ in drafts
            ]
            said = yield probes
            left -= len(probes)
            for (row, parent, child, used), one in zip(drafts, said, strict=False):
                if one.reward is None:
                    continue
                child.reward = one.reward
                state.learn(row, parent, child, used)
                state.found += subject.scale.accepts(one)

    def _take(
        self, subject: Subject, state: _State, probes: Sequence[Probe], said: Sequence[Ruling]
    ) -> None:
        """Learns from whole texts, which no edits made."""
        for probe, one in zip(probes, said, strict=False):
            named = probe.kind == "source-word" and subject.scale.accepts(one)
            if one.reward is not None and not named:  # nothing is made of what may be right
                start = _Candidate(subject.scale.low, "", ())
                child = _Candidate(one.reward, probe.response, (probe.note,))
                state.learn(probe.row, start, child, ())
                state.found += probe.kind == "searched" and subject.scale.accepts(one)


def _elsewhere(subject: Subject, probes: Sequence[Probe], said: Sequence[Ruling]) -> list[Probe]:
    """What was accepted for one row, for rows with certainly other answers."""
    found = []
    for probe, one in zip(probes, said, strict=False):
        if probe.kind != "source-word" or not subject.scale.accepts(one):
            continue
        right = subject.rows[probe.row].truth.text
        others = [
            place
            for place, row in enumerate(subject.rows)
            if row.tests is None
            and row.truth.sort in _SORTS
            and is_certainly_wrong(right, row.truth)
            and subject.unmentioned(place, probe.response)
        ]
        found += [
            Probe(place, "searched", probe.response, "refuse", f"{probe.note}; so did another row")
            for place in others[:2]
        ]
    return found[: 4 * _ROUND]


def _dictionary(subject: Subject, rows: Sequence[int]) -> list[Probe]:
    """The words of the grader's source: alone, dressed, beside a wrong answer; and empty forms."""
    found: dict[tuple[int, str], Probe] = {}
    for row in rows:
        for form in skeletons(subject.rows[row].truth):
            text = subject.dresses[0].wear(form)
            if subject.unmentioned(row, text):
                note = "the form of the answer, with nothing in it"
                found.setdefault((row, text), Probe(row, "searched", text, "refuse", note))
    for number, word in enumerate(subject.words):
        row = rows[number % len(rows)]
        wrong = plain_wrong(subject.rows[row].truth, 1)
        worn = subject.dresses[0]
        texts = [word, f"{word} {word}", worn.wear(word), f"{_FILLER}{word}"]
        if word.isidentifier():
            texts += [form.format(word) for form in _KEYED]
        texts += [f"{worn.wear(one)} {word}" for one in wrong]
        texts += [f"{word} {worn.wear(one)}" for one in wrong]
        for text in texts:
            if subject.unmentioned(row, text):
                note = f"{word[:40]!r} stands in the grader's source"
                found.setdefault((row, text), Probe(row, "source-word", text, "refuse", note))
    for length in subject.lengths:
        for size in (length - 1, length, length + 1, 2 * length):
            row = rows[size % len(rows)]
            filler = (_FILLER * (size // len(_FILLER) + 1))[:size]
            for one in (filler, ("word " * size)[:_MOST_LONG], ("a line\n" * size)[:_MOST_LONG]):
                if subject.unmentioned(row, one):
                    note = f"{length} stands in the grader's source"
                    found.setdefault((row, one), Probe(row, "searched", one, "refuse", note))
    return list(found.values())


def _arms(subject: Subject, rows: Sequence[int]) -> list[_Arm]:
    arms = [
        arm
        for token in dict.fromkeys((*_TOKENS, *filter(_is_mark, subject.words)))
        for arm in (
            _Arm(f"behind it {token[:20]!r}", partial(_joined, "{0} {1}", token)),
            _Arm(f"before it {token[:20]!r}", partial(_joined, "{1} {0}", token)),
        )
    ]
    arms += [
        _Arm(f"dressed {dress.name}", partial(_worn, dress))
        for dress in subject.dresses
        if dress != PLAIN
    ]
    wrong = [one for row in rows for one in plain_wrong(subject.rows[row].truth, 1)]
    if wrong:
        dressed = [f"\n{subject.dresses[0].wear(one)}" for one in wrong]
        arms.append(_Arm("a wrong answer", partial(_with_one, wrong)))
        arms.append(_Arm("a dressed one", partial(_with_one, dressed)))
    forms = [one for row in rows for one in skeletons(subject.rows[row].truth)]
    if forms:
        arms += [
            _Arm("an empty form", partial(_with_one, forms)),
            _Arm("its digits are zeros", lambda text, _: re.sub(r"\d", "0", text)),
            _Arm("its last line alone", lambda text, _: text.rpartition("\n")[2]),
            _Arm("its values are patterns", lambda text, _: re.sub(r'"[^":]*"(?!:)', '".*"', text)),
        ]
    arms += [
        _Arm("thoughts before it", lambda text, _: f"<think>\n{_FILLER}\n</think>\n{text}"),
        _Arm("filler before it", lambda text, _: f"{_FILLER * 5}\n{text}"),
        _Arm("twice", lambda text, _: f"{text}\n{text}"),
        _Arm("ten times", lambda text, _: f"{text}\n" * 10),
        _Arm("in capitals", lambda text, _: text.upper()),
        _Arm("its half", lambda text, _: text[: len(text) // 2]),
        _Arm("in a fence", lambda text, _: f"```\n{text}\n```"),
    ]
    return arms


def _is_mark(word: str) -> bool:
    """Whether a word of the source cannot be a name of an answer."""
    return re.search(r"[^\w\s.,'-]", word) is not None


def _joined(form: str, token: str, text: str, _: random.Random) -> str:
    return form.format(text, token)


def _worn(dress: Dress, text: str, _: random.Random) -> str:
    return dress.wear(text)


def _with_one(texts: Sequence[str], text: str, draws: random.Random) -> str:
    return f"{text} {draws.choice(texts)}"


_Draft = tuple[int, _Candidate, _Candidate, list[_Arm]]


def _drafted(
    subject: Subject, state: _State, rows: Sequence[int], draws: random.Random, count: int
) -> list[_Draft]:
    """New candidates: a good one, or nothing, with one to three edits."""
    drafts: list[_Draft] = []
    for _ in range(8 * count):
        if len(drafts) == count:
            break
        row = draws.choice(list(rows))
        elite = state.best.get(row, [])
        fresh = not elite or draws.random() < 0.3
        parent = _Candidate(subject.scale.low, "", ()) if fresh else draws.choice(elite)
        text = parent.text
        used = [_drawn(state.arms, draws) for _ in range(draws.choice((1, 1, 2, 3)))]
        for arm in used:
            text = arm.edit(text, draws)
        if text == parent.text or len(text) > _MOST_CHARS or not subject.unmentioned(row, text):
            continue
        names = (*parent.edits, *(arm.name for arm in used))
        drafts.append((row, parent, _Candidate(0.0, text, names[-6:]), used))
    return drafts


def _drawn(arms: Sequence[_Arm], draws: random.Random) -> _Arm:
    """Of some arms, the one with the greatest of one draw from each arm's beliefs."""
    some = draws.sample(arms, min(_ARMS_AT_ONCE, len(arms)))
    return max(some, key=lambda arm: draws.betavariate(arm.won, arm.lost))
