r"""`json-schema`: the response is JSON that is valid under the schema of the reference.

How. The JSON is taken from the response (`extract`), read strictly and within bounds
(json_text.py), and validated by the package jsonschema under the draft that $schema names: 3, 4, 6,
7, 2019-09 or 2020-12, which is the default. Patterns are matched by RE2, nothing is fetched
(schemas.py). `credit` tells what an invalid value earns: `none`, or `fraction`: the required
properties of the schema's root (those of `properties`, if it requires none) count one each, and one
more stands for all the rest; the share of these without an error.

The reference is data: the schema; or one text that is the schema.

What a policy could game. A schema sees form: the emptiest value that is valid earns all, so require
what matters, and set minLength, minItems and additionalProperties. With `extract=auto` text around
the JSON is free of charge: `whole` forbids it. `fraction` pays for properties with made-up values.

Limits. 200,000 characters, `max_depth` levels, 10,000 values, numbers of 300 digits; beyond these,
and for a key twice in an object, NaN, comments or trailing commas, the verdict is `unparsed`. A
schema with a pattern that RE2 lacks (look-ahead, back-references), a $ref that leads out of it, or
parts of several drafts is a fault. `format` counts with `formats` only: date, email, ipv4, ipv6 and
uuid. A schema that refers to itself in many branches may take exponential time; the item's time-out
ends it.

Differences from the package jsonschema and from structured-output graders:
1. \d, \w and \s are ASCII in patterns, as in ECMA-262; the package follows Python.
2. Nothing is repaired: graders that repair JSON first (trailing commas, quotes) accept more.
3. Faults of the schema are faults of the item; several graders count them as wrong answers.
4. Inherited from the package: under 2019-09, unevaluatedProperties does not count what an
additionalProperties beside it, that is a schema and not a boolean, has evaluated.

Sources: JSON Schema 2020-12 (draft-bhutton-json-schema-01); RFC 8259. Of the 5,377 required tests
of the JSON-Schema-Test-Suite (44401e0c, drafts 3 to 2020-12), 5,215 come out as written, 161 are
faults by the limits above (other documents, own drafts, \p{Letter}), 1 is wrong by difference 4.

Measured: 23 cases of JSON-Schema-Test-Suite on what is read otherwise than by the library
(patterns, unevaluated properties, unique items): no difference. The rest is the library's own
(`tests/unit/test_verifier_text_structured.py`).
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from assay.kit.json_text import (
    MAX_CHARS,
    MAX_DEPTH,
    NotJson,
    depth_of,
    fenced,
    last_value,
    read_json,
    reads,
)
from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier
from assay.reward_server.verifiers.text import schemas
from assay.reward_server.verifiers.text.parts import final_text, shown

_MOST_TROUBLES = 200
_OPENERS = {"array": "[", "object": "{"}


@verifier(
    "json-schema",
    tasks=("structured-output",),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    prepare=lambda: schemas.load(True),
)
def json_schema(
    item: VerifierItem,
    *,
    extract: Annotated[
        Literal["auto", "whole", "fence", "last"],
        "Where the JSON stands behind the last </think>: whole, the text is JSON; fence, in "
        "the last code fence; last, the last object or list in the text; auto, the first of "
        "these that is there.",
    ] = "auto",
    credit: Annotated[
        Literal["none", "fraction"],
        "What an invalid value earns: none, 0; fraction, the share of required properties of "
        "the root, and of one part for the rest, without an error.",
    ] = "none",
    max_depth: Annotated[int, Range(1, MAX_DEPTH), "A value nested deeper is unparsed."] = 32,
    formats: Annotated[bool, "Whether format counts: date, email, ipv4, ipv6, uuid."] = False,
) -> Judgement:
    """The response is JSON that is valid under the schema of the reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the reference is no schema that can be used.
    """
    document = item.document()
    try:
        schema = schemas.load(document)
    except schemas.SchemaError as error:
        raise Unjudgeable(UNUSABLE_REFERENCE, f"the schema cannot be used: {error}") from None
    text = _extracted(item, extract, document)
    if isinstance(text, NotJson):
        return _unparsed(str(text))
    try:
        value = read_json(text)
    except NotJson as error:
        return _unparsed(f"not JSON: {error}")
    if depth_of(text) > max_depth:
        return _unparsed(f"nested deeper than {max_depth} levels")
    troubles = _troubles(schema, value, formats=formats)
    if not troubles:
        return _judgement("correct", 1.0, text, "valid")
    score = _share(document, value, troubles) if credit == "fraction" else 0.0
    where = "/".join(map(str, troubles[0].path)) or "the root"
    why = f"{len(troubles)} errors; at {where[:200]}: {troubles[0].message[:400]}"
    return _judgement("partial" if score else "incorrect", score, text, why)


def _extracted(item: VerifierItem, how: str, document: JsonValue) -> str | NotJson:
    text = final_text(item.response())
    if text is None:
        return NotJson("the thought is not closed")
    if len(text) > MAX_CHARS:
        return NotJson(f"the text is longer than {MAX_CHARS:,} characters")
    text = text.strip()
    if how == "whole" or (how == "auto" and reads(text)):
        return text
    if how in ("auto", "fence"):
        content = fenced(text)
        if content is not None or how == "fence":
            return content.strip() if content is not None else NotJson("there is no code fence")
    kind = document.get("type") if isinstance(document, dict) else None
    found = last_value(text, _OPENERS.get(kind, "") if isinstance(kind, str) else "")
    if found is not None:
        return found
    return text if how == "auto" else NotJson("there is no object or list in the text")


def _troubles(schema: schemas.Schema, value: JsonValue, *, formats: bool) -> list[schemas.Trouble]:
    """The value's errors, at most 200.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the schema refers to itself without end.
    """
    try:
        return list(itertools.islice(schema.troubles(value, formats=formats), _MOST_TROUBLES))
    except RecursionError:
        pass
    try:
        list(itertools.islice(schema.troubles(None, formats=False), 1))
    except RecursionError:
        raise Unjudgeable(UNUSABLE_REFERENCE, "the schema refers to itself without end") from None
    return [schemas.Trouble((), None, "value and schema are nested too deeply together")]


def _share(document: Any, value: JsonValue, troubles: list[schemas.Trouble]) -> float:
    """The share of the root's required properties, and of one part for the rest, without error."""
    wanted = document.get("required") or list(document.get("properties", ())) if document else []
    if not isinstance(value, dict) or not isinstance(wanted, list) or not wanted:
        return 0.0
    names = set(map(str, wanted))
    bad = {str(one.path[0]) for one in troubles if one.path} & names
    bad |= {one.missing for one in troubles if not one.path and one.missing in names}
    bad |= {name for name in names if name not in value}
    rest = any(
        str(one.path[0]) not in names if one.path else one.missing not in names for one in troubles
    )
    good = len(names) - len(bad) + (not rest)
    return min(good, len(names)) / (len(names) + 1)


def _judgement(verdict: str, score: float, text: str, why: str) -> Judgement:
    return Judgement.composed(
        verdict,
        (Component("valid", score),),
        extracted_answer=shown(text),
        explanation=why,
    )


def _unparsed(why: str) -> Judgement:
    return Judgement.composed("unparsed", (Component("valid", 0.0),), explanation=why)
