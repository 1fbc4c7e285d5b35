"""Instructions beside IF-RLVR's training code, on responses that are made from golden rows.

ASSAY_OPEN_INSTRUCT names a checkout of allenai/open-instruct (Apache-2.0), of which nothing is kept
here; it needs immutabledict, absl-py, langdetect and NLTK. Each of its 54 instructions judges
some 2,000 texts: golden rows, mutated once to four times, and lines of fragments.

Two things are put in place before it runs: the sentences of `sentences`, since NLTK's Punkt
parameters have to be downloaded (its tokens are NLTK's own), and langdetect's seed.
"""

from __future__ import annotations

import importlib
import os
import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.reward_server.domain import JsonValue
from assay.verifiers_extra.instructions.sentences import sentences
from assay.verifiers_extra.instructions.table import IFEVAL, IFRLVR, SLOW, read
from assay.verifiers_extra.languages import detection
from instructions_support import AT_LEAST, LESS, TABLE, Row

FOLDER = os.environ.get("ASSAY_OPEN_INSTRUCT", "")
ROUNDS = 2_000
SLOW_ROUNDS = 200

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not FOLDER, reason="ASSAY_OPEN_INSTRUCT names no checkout of open-instruct"),
]

TRAINED = [row for row in TABLE if row[0] in IFEVAL or row[0] in IFRLVR]
FRAGMENTS = (
    *("It is so.", "It was so!", "Is it so?", "it", "sun", "Sun", "moon", "The", "cat", "level"),
    *("I", "a", "Mr. Bean", "Dr. No", "3.14", "1.2.3", "U.S. They", "e.g.", "i.e. so", "Acme Inc."),
    *("Acme Inc. He", "Ph.D.", "see a.com", "A. B. C.", "J.R.R. T.", "Wait...", "so.. it", "?!"),
    *('"So."', '"So!"', '"So?"', "“So.”", "'", "-", "--", "***", "******", "*", "* a", "- b", "\n"),
    *("\n\n", "\n\n\n", "[a]", "[a", "b]", "<<a", "b>>", "<<Ode>>", "P.S. x", "p. p. s", ",", ";"),
    *(
        "können",
        "İ",
        "日本",
        "é",
        "\t",
        "\u2028",
        "42",
        "WORD",
        "My answer is no.",
        "Section 1",
        "#",
    ),
    *(
        "Time flies when having fun",
        "Time crawls when having fun",
        "Why is it?",
        "again",
        "{}",
        "1",
    ),
)


def official() -> dict[str, Any]:
    """The training code's registry, its sentences ours."""
    sys.path.insert(0, FOLDER)
    try:
        registry = importlib.import_module("open_instruct.IFEvalG.instructions_registry")
        utilities = importlib.import_module("open_instruct.IFEvalG.instructions_util")
    finally:
        sys.path.remove(FOLDER)
    words = importlib.import_module("nltk.tokenize").NLTKWordTokenizer()
    utilities.count_sentences = lambda text: len(sentences(text))
    utilities.nltk.word_tokenize = lambda text: [
        token for part in sentences(text) for token in words.tokenize(part)
    ]
    detection.load()
    found: dict[str, Any] = registry.INSTRUCTION_DICT
    return found


@pytest.fixture(scope="module")
def registry() -> dict[str, Any]:
    pytest.importorskip("immutabledict")
    assert (Path(FOLDER) / "open_instruct" / "IFEvalG").is_dir()
    return official()


def mutated(text: str, rng: random.Random) -> str:
    """One edit: a piece out, in, twice, in another case, or two pieces exchanged."""
    pieces = re.findall(r"\s+|\w+|[^\w\s]", text) or [""]
    at, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    match rng.randrange(8):
        case 0:
            del pieces[at]
        case 1:
            pieces.insert(at, rng.choice(FRAGMENTS))
        case 2:
            pieces.append(rng.choice((" ", "", "\n")) + rng.choice(FRAGMENTS))
        case 3:
            pieces[at:at] = pieces[min(at, other) : max(at, other) + 1]
        case 4:
            pieces[at] = rng.choice((str.upper, str.lower, str.title))(pieces[at])
        case 5:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case 6:
            pieces.insert(0, rng.choice(FRAGMENTS) + rng.choice((" ", "", "\n")))
        case _:
            pieces = [*pieces, rng.choice((" ", "\n", "-", "\n***\n")), *pieces]
    return "".join(pieces)


def responses(row: Row, rounds: int, rng: random.Random) -> Iterator[str]:
    """Golden responses, mutated, and others that have nothing to do with the instruction."""
    for number in range(rounds):
        match number % 4:
            case 0 | 1:
                text = row[2]
            case 2:
                text = row[3]
            case _:
                parts = rng.choices(FRAGMENTS, k=rng.randint(1, 12))
                text = rng.choice((" ", " ", "", "\n", "-")).join(parts)
        for _ in range(rng.randint(0, 4) if number > 1 else 0):
            text = mutated(text, rng)
        yield text


def variants(arguments: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    """The arguments as they are, with each number one more, and each relation turned round."""
    yield arguments
    for name, value in arguments.items():
        if isinstance(value, int) and name != "nth_paragraph":  # it may not exceed their number
            yield {**arguments, name: value + 1}
        elif value in (AT_LEAST, LESS):
            yield {**arguments, name: LESS if value == AT_LEAST else AT_LEAST}


def combines(text: str) -> bool:
    """Whether it has a combining mark: to NLTK 3.10.4 part of a word, to Python's patterns not."""
    return any(map(unicodedata.combining, text))


@pytest.mark.slow
@pytest.mark.parametrize("row", TRAINED, ids=lambda row: str(row[0]))
def test_verdicts_are_those_of_the_training_code(row: Row, registry: dict[str, Any]) -> None:
    identity = row[0]
    rng = random.Random(identity)
    told = {**row[1], "letter": "a"} if "letter" in row[1] else row[1]  # "#": the original draws
    verdicts = Counter[bool]()
    rounds = SLOW_ROUNDS if identity in SLOW else ROUNDS
    for arguments in variants(told):
        (instruction,) = read({"instruction_id": [identity], "kwargs": [arguments]})
        checker = registry[identity](identity)
        checker.build_description(**arguments)
        for response in responses(row, rounds, rng):
            if not response.strip():  # some of the checkers raise on a blank one
                continue
            if identity == "length_constraints:number_words" and combines(response):
                continue
            wanted = bool(checker.check_following(response))
            assert instruction.follows([response]) == wanted, (arguments, response)
            verdicts[wanted] += 1
    assert min(verdicts.values()) >= rounds // 50


def test_the_training_set_is_whole(registry: dict[str, Any]) -> None:
    assert set(registry) == set(IFEVAL) | set(IFRLVR)
