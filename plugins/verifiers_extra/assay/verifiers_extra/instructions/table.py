"""Every known instruction: one line each, in tables.

A new instruction is a function from its arguments to a check, and a line in a table. If its check
asks a library or for sentences, its id goes into `SLOW` or `SPLITTING` as well.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.reward_server import UNUSABLE_REFERENCE, JsonValue, Unjudgeable, VerifierItem
from assay.verifiers_extra.instructions.arguments import Arguments, Check
from assay.verifiers_extra.instructions.ifbench_custom import IFBENCH_CUSTOM
from assay.verifiers_extra.instructions.ifbench_form import IFBENCH_FORM
from assay.verifiers_extra.instructions.ifbench_words import IFBENCH_WORDS
from assay.verifiers_extra.instructions.ifeval import IFEVAL
from assay.verifiers_extra.instructions.ifrlvr import IFRLVR

IFBENCH = {**IFBENCH_WORDS, **IFBENCH_FORM, **IFBENCH_CUSTOM}
INSTRUCTIONS: dict[str, Callable[[Arguments], Check]] = {**IFEVAL, **IFBENCH, **IFRLVR}
SLOW = frozenset(
    (
        "change_case:english_capital",
        "change_case:english_lowercase",
        "format:emoji",
        "language:response_language",
        "words:odd_even_syllables",
    )
)
"""Instructions whose checks ask a library."""

SPLITTING = frozenset(
    (
        "change_case:capital_word_frequency",
        "count:count_unique",
        "count:counting_composition",
        "count:pronouns",
        "custom:sentence_alphabet",
        "custom:word_reverse",
        "format:no_bullets_bullets",
        "format:title_case",
        "keywords:keyword_specific_position",
        "keywords:start_end",
        "length_constraints:number_sentences",
        "ratio:sentence_balance",
        "ratio:sentence_type",
        "ratio:sentence_words",
        "sentence:alliteration_increment",
        "sentence:increment",
        "sentence:keyword",
        "words:keywords_specific_position",
        "words:last_first",
        "words:start_verb",
        "words:words_position",
    )
)
"""Instructions whose checks split the response into sentences: some 20 us for each."""

MAX_INSTRUCTIONS = 100
MAX_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of an item.

    Attributes:
        identity: its id, such as "punctuation:no_comma".
        check: whether a response follows it.
    """

    identity: str
    check: Check

    def follows(self, forms: Sequence[str]) -> bool:
        """Whether any form of a response follows it; a blank form never does."""
        return any(form.strip() and self.check(form) for form in forms)


def document(item: VerifierItem) -> JsonValue:
    """The reference as data: JSON, or the Python literal that IF-RLVR's data sets have as text.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for neither.
    """
    try:
        return item.document()
    except Unjudgeable:
        if len(item.references) != 1 or len(item.references[0]) > MAX_CHARS:
            raise
        try:
            value: JsonValue = json.loads(json.dumps(ast.literal_eval(item.references[0])))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = None
        if value is None:
            raise
        return value


def read(document: JsonValue) -> list[Instruction]:
    """The instructions of a reference.

    Args:
        document: `{"instruction_id_list": [...], "kwargs": [...]}`, with "instruction_id" for the
            first name if need be, or a list that holds one such object, or its JSON text. The two
            lists run in parallel; null stands for no arguments, and "kwargs" may be left out.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for any other shape, an unknown instruction or a bad
            argument.
    """
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
        if isinstance(document, str):
            document = _from_text(document)
    if not isinstance(document, dict):
        raise _unusable("must be an object with 'instruction_id_list' and 'kwargs'")
    identities = document.get("instruction_id_list", document.get("instruction_id"))
    if not isinstance(identities, list) or not 0 < len(identities) <= MAX_INSTRUCTIONS:
        raise _unusable(f"must list 1 to {MAX_INSTRUCTIONS} ids in 'instruction_id_list'")
    values = document.get("kwargs") or [None] * len(identities)
    if not isinstance(values, list) or len(values) != len(identities):
        raise _unusable(f"must list as many 'kwargs' as instructions, {len(identities)}")
    return [_built(*pair) for pair in zip(identities, values, strict=True)]


def _from_text(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _built(identity: JsonValue, values: JsonValue) -> Instruction:
    build = INSTRUCTIONS.get(identity) if isinstance(identity, str) else None
    if build is None or not isinstance(identity, str):
        known = ", ".join(sorted(INSTRUCTIONS))
        raise _unusable(f"names an unknown instruction {str(identity)[:80]!r}; known are: {known}")
    if values is not None and not isinstance(values, dict):
        raise _unusable(f"must give the 'kwargs' of {identity!r} as an object or null")
    arguments = Arguments(identity, values or {})
    check = build(arguments)
    arguments.finish()
    return Instruction(identity, check)


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of instructions {what}")
