"""Programs of a small language in which it is known what can still be made of a beginning.

The language is a part of Python, so that the sandbox runs it. A program is a function that puts
letters behind a text, one a line (the family `append` of `assay code-prm`, with letters that follow
each other in the alphabet); a line may also be trivial (`s = s`) or a comment. What is appended
stays appended. So a beginning can be completed if and only if its letters are the first of those
that were asked for: the oracle.

The pretrained model writes a wrong letter on three lines of ten, and now and then a trivial line or
a comment. Long programs have 16 to 24 letters (`t` is followed by `a`), of which it misses one in
twelve: they too are right one time in five.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.trainer.recipes.code_prm.problems import append_problem
from experiments.miniature import Shape, pretrained, write_rows

LETTERS = "abcdefghijklmnopqrst"
TRIVIAL, COMMENT = 0.08, 0.08
HEAD, OPEN, CLOSE, BACK = "def extend(s):\n", "    s = s + '", "'\n", "    return s\n"
IDLE, NOTE = "    s = s\n", "    # so far\n"
_ASKED = append_problem("??")[0].split("?")
WORDS = (*LETTERS, HEAD, OPEN, CLOSE, BACK, IDLE, NOTE, *_ASKED)


@dataclass(frozen=True, slots=True)
class Programs:
    """How long programs are, and how often the pretrained model is wrong.

    Attributes:
        name: of its model and problems.
        lengths: how many letters may be asked for.
        wrong: the chance of a wrong letter.
        limit: tokens of a program.
        shape: of the model.
    """

    name: str
    lengths: tuple[int, ...]
    wrong: float
    limit: int
    shape: Shape

    def asked(self, length: int) -> list[str]:
        """What may be asked for: letters that follow each other, round the end where it is long."""
        starts = len(LETTERS) if max(self.lengths) > len(LETTERS) else len(LETTERS) - length + 1
        return [(LETTERS * 3)[start : start + length] for start in range(starts)]

    def draw(self, dice: random.Random) -> tuple[str, str]:
        """A question, and a program with the mistakes of the pretrained model."""
        letters = dice.choice(self.asked(dice.choice(self.lengths)))
        text = HEAD
        for letter in letters:
            text += _between(dice)
            text += OPEN + (dice.choice(LETTERS) if dice.random() < self.wrong else letter) + CLOSE
        return append_problem(letters)[0], text + _between(dice) + BACK


SHORT = Programs(
    "programs", (4, 5, 6), 0.3, 40,
    Shape(width=64, layers=2, context=128, steps=350, batch=64, learning_rate=5e-3),
)  # fmt: skip
LONG = Programs(
    "programs-long", (16, 20, 24), 0.08, 96,
    Shape(width=64, layers=2, context=256, steps=500, batch=32, learning_rate=5e-3),
)  # fmt: skip


def _between(dice: random.Random) -> str:
    return IDLE * (dice.random() < TRIVIAL) + NOTE * (dice.random() < COMMENT)


def asked_letters(question: str) -> str:
    """The letters that a question asks for."""
    middle = question.removeprefix(_ASKED[0]).partition(_ASKED[-1])[0]
    return middle.replace(_ASKED[1], "")


def letters_of(lines: Sequence[str]) -> tuple[str, bool] | None:
    """What the lines append, and whether they return; None where they are no beginning of one."""
    if lines and lines[0] != HEAD:
        return None
    letters = ""
    for line in lines[1:]:
        if line == BACK:
            return letters, True
        if line.startswith(OPEN) and line.endswith(CLOSE) and len(line) == len(OPEN + CLOSE) + 1:
            letters += line[len(OPEN)]
        elif line not in (IDLE, NOTE):
            return None
    return letters, False


def passes(question: str, program: str) -> bool:
    """Whether a program is right."""
    found = letters_of(program.splitlines(keepends=True))
    known = all(
        line in (HEAD, IDLE, NOTE, BACK) or line.startswith(OPEN)
        for line in program.splitlines(keepends=True)
    )
    return known and found == (asked_letters(question), True)


def feasible(question: str, lines: Sequence[str]) -> bool:
    """The oracle: whether these lines can be completed to a program that passes."""
    asked, found = asked_letters(question), letters_of(lines)
    if found is None:
        return False
    letters, ended = found
    return letters == asked if ended else asked.startswith(letters)


def oracle_lines(question: str, lines: Sequence[str]) -> int:
    """How many of the lines the longest feasible beginning has."""
    return max(n for n in range(len(lines) + 1) if feasible(question, lines[:n]))


def programs(folder: Path, kind: Programs = SHORT) -> tuple[Path, Path, Path]:
    """The pretrained model, training problems and held-out ones (a fifth), with their tests."""
    model = pretrained(folder / kind.name, WORDS, kind.draw, kind.shape)
    asked = [letters for size in kind.lengths for letters in kind.asked(size)]
    random.Random(0).shuffle(asked)
    rows = []
    for letters in asked:
        question, solution, asserts = append_problem(letters)
        rows.append({"question": question, "tests": {"asserts": asserts}, "solution": solution})
    train = len(rows) - len(rows) // 5
    paths = folder / f"{kind.name}-train.jsonl", folder / f"{kind.name}-test.jsonl"
    for path, some in zip(paths, (rows[:train], rows[train:]), strict=True):
        write_rows(path, some)
    return model, *paths
