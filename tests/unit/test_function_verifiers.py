"""Verifiers as functions: what the decorator reads, what it refuses, and rows as self-tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from assay.clients import Data
from assay.clients.rows.items import Defaults, Keys, item_of
from assay.reward_server import Component, Judgement, OneOf, Range, VerifierItem, border, verifier
from assay.reward_server.domain import (
    Candidate,
    CompositeVerifier,
    Fault,
    ParameterSpec,
    RemoteVerifier,
    Verifier,
)
from assay.reward_server.functions import ExampleError, FunctionVerifier
from assay.reward_server.registry import load_registry

COLOURS = ("red", "green")
ROW = {"response": "4", "reference": "4", "verdict": "correct"}
LOCAL = [one for one in load_registry() if not isinstance(one, CompositeVerifier | RemoteVerifier)]
FUNCTIONS = [one for one in LOCAL if isinstance(one, FunctionVerifier)]


def judged(*, right: bool) -> Judgement:
    return Judgement.composed("correct" if right else "incorrect", (Component("c", float(right)),))


def named(one: Verifier) -> str:
    return one.spec.name


@verifier("probe-all", tasks=(), rewards=(-1.0, 2.0), version="7", needs_reference=False)
def probe(
    item: VerifierItem,
    *,
    needed: Annotated[int, Range(1, 3), "Must be passed."],
    share: Annotated[float, Range(maximum=1.0), "A share."] = 0.5,
    mode: Annotated[Literal["a", "b"], "One of two."] = "a",
    colour: Annotated[str, OneOf(COLOURS), "One of some."] = "red",
    names: Annotated[tuple[str, ...], "Names."] = (),
    loud: Annotated[bool, "Loudly."] = False,
    free: Annotated[str, "Anything."] = "",
) -> Judgement:
    """A probe for tests,
    in two lines.

    Raises:
        Nothing: at all.
    """
    told = (needed, share, mode, colour, names, loud, free)
    return judged(right=told == (2, 1.0, "b", "green", ("x",), True, "y"))


def test_signature_and_docstring_are_the_description() -> None:
    spec = probe.spec
    assert (spec.name, spec.version, spec.tasks) == ("probe-all", "7", ())
    assert spec.description == "A probe for tests, in two lines."
    assert (spec.min_reward, spec.max_reward, spec.needs_reference) == (-1.0, 2.0, False)
    assert spec.verdicts == ("correct", "incorrect")
    assert spec.parameters == (
        ParameterSpec("needed", "int", None, "Must be passed.", minimum=1, maximum=3),
        ParameterSpec("share", "float", 0.5, "A share.", maximum=1.0),
        ParameterSpec("mode", "string", "a", "One of two.", allowed_values=("a", "b")),
        ParameterSpec("colour", "string", "red", "One of some.", allowed_values=COLOURS),
        ParameterSpec("names", "string-list", (), "Names."),
        ParameterSpec("loud", "bool", False, "Loudly."),
        ParameterSpec("free", "string", "", "Anything."),
    )


def test_parameters_arrive_by_name() -> None:
    told = {"needed": 2, "share": 1, "mode": "b", "colour": "green", "names": ("x",)}
    parameters = probe.spec.complete({**told, "loud": True, "free": "y"})
    assert probe.judge(VerifierItem(Candidate(""), parameters=parameters)).verdict == "correct"
    parameters = probe.spec.complete({"needed": 2})
    assert probe.judge(VerifierItem(Candidate(""), parameters=parameters)).verdict == "incorrect"


def test_a_task_of_its_own_name_is_the_default() -> None:
    @verifier("some-name")
    def some_name(item: VerifierItem) -> Judgement:
        return judged(right=bool(item))

    assert some_name.spec.tasks == ("some-name",)
    assert some_name.spec.description == "some-name"


def _positional(item: VerifierItem, mode: Annotated[str, "What."] = "") -> Judgement:
    raise NotImplementedError


def _untold(item: VerifierItem, *, mode: str = "") -> Judgement:
    raise NotImplementedError


def _bare(item: VerifierItem, *, mode="") -> Judgement:  # type: ignore[no-untyped-def]
    raise NotImplementedError


def _mapping(item: VerifierItem, *, mode: Annotated[dict[str, int], "What."]) -> Judgement:
    raise NotImplementedError


def _numbers(item: VerifierItem, *, mode: Annotated[Literal[1, 2], "What."] = 1) -> Judgement:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_positional, "'mode' is not keyword-only"),
        (_untold, r"annotate 'mode' as Annotated\[TYPE, 'what it does'\]"),
        (_bare, "annotate 'mode'"),
        (_mapping, "annotate 'mode'"),
        (_numbers, "a Literal of texts"),
    ],
)
def test_another_signature_is_refused_where_it_stands(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"verifier 'odd': .*{message}"):
        verifier("odd")(function)


def made(rows: list[Any] | None, **how: Any) -> FunctionVerifier:
    def same(item: VerifierItem, *, loud: Annotated[bool, "Loudly."] = False) -> Judgement:
        return judged(right=item.response() in item.answers() and not loud)

    return verifier("made", examples=rows, **how)(same)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([], "example 1 of 'made': a row is an object"),
        ({"response": "4"}, 'with "response" and "verdict"'),
        ({**ROW, "expected": 4}, "no key is named 'expected'; there are anchor, data, params"),
        ({"verdict": "correct"}, "example 1 of 'made': 'response'"),
        ({**ROW, "params": {"loud": 1}}, "parameter 'loud' takes a bool"),
        ({**ROW, "params": {"quiet": True}}, "has no parameter 'quiet'"),
    ],
)
def test_a_row_that_is_none_says_where_and_why(row: Any, message: str) -> None:
    with pytest.raises(ExampleError, match=message):
        _ = made([row]).examples


def test_rows_become_items() -> None:
    rows: list[Any] = [
        ROW,
        {**ROW, "reference": ["4", "four"]},
        {**ROW, "reference": [1, 2], "prompt": "How many?", "response_token_count": 3},
        {"response": "4", "data": ["x", "y"], "anchor": "5", "verdict": "correct"},
        {**ROW, "reference": [], "params": {"loud": True}},
    ]
    first, several, data, texts, empty = (example.item for example in made(rows).examples)
    assert (first.references, first.data) == (("4",), None)
    assert several.references == ("4", "four")
    assert (data.references, data.data, data.response_token_count) == ((), [1, 2], 3)
    assert data.prompt[0].content == "How many?"
    assert (texts.references, texts.data, texts.anchor) == ((), ["x", "y"], "5")
    assert (empty.references, empty.data) == ((), [])
    assert empty.parameters["loud"] is True


def test_a_file_of_rows_stands_beside_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from assay.reward_server import Component, Judgement, VerifierItem, verifier\n\n"
        "@verifier('two-files')\n"
        "def two_files(item: VerifierItem) -> Judgement:\n"
        "    '''Everything is right.'''\n"
        "    return Judgement.composed('correct', (Component('c', 1.0),))\n"
    )
    (tmp_path / "two_files_here.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    from two_files_here import two_files  # type: ignore[import-not-found]

    with pytest.raises(ExampleError, match=r"no two-files.jsonl beside the module: write it"):
        _ = two_files.examples
    rows = tmp_path / "two-files.jsonl"
    rows.write_text(f"{json.dumps(ROW)}\nnothing\n")
    with pytest.raises(ExampleError, match=r"two-files\.jsonl:2: not JSON"):
        _ = two_files.examples
    rows.write_text(f"{json.dumps(ROW)}\n")
    assert [example.verdict for example in two_files.examples] == ["correct"]


def test_a_number_as_glance_is_that_of_characters() -> None:
    short = made([], glance=3)
    item = VerifierItem(Candidate("four"), references=("four",), parameters={})
    assert short.glance(item) is None
    assert made([], glance=4).glance(item) == short.judge(item)
    assert made([]).glance(item) is None


def test_what_it_raises_is_told_by_its_own_line(caplog: pytest.LogCaptureFixture) -> None:
    @verifier("raising")
    def raising(item: VerifierItem) -> Judgement:
        raise KeyError(item)

    outcome = border.judge(raising, VerifierItem(Candidate("")))
    assert isinstance(outcome, Fault)
    assert "raised KeyError at test_function_verifiers.py:" in outcome.message
    assert "verifier raising failed" in caplog.text


@pytest.mark.parametrize("one", LOCAL, ids=named)
def test_every_verifier_passes_its_examples_which_show_every_verdict(one: Verifier) -> None:
    one.prepare()
    for example in one.examples:
        outcome = border.judge(one, example.item)
        assert getattr(outcome, "verdict", outcome) == example.verdict
    assert {example.verdict for example in one.examples} == set(one.spec.verdicts)


def rows_of(one: FunctionVerifier) -> Iterator[dict[str, Any]]:
    yield from (row for _, row in one._located_rows())


@pytest.mark.parametrize("one", FUNCTIONS, ids=named)
def test_rows_are_those_that_check_verifier_takes(one: FunctionVerifier) -> None:
    keys, defaults = Keys(verifier="", task=""), Defaults(verifier=one.spec.name)
    for row, example in zip(rows_of(one), one.examples, strict=True):
        if "data" in row or "anchor" in row:
            continue
        item = item_of(keys, defaults, row, "1")
        assert item.response == example.item.candidate.text
        given = item.reference
        if isinstance(given, Data):
            assert given.value == example.item.data
        else:
            several = (given,) if isinstance(given, str) else tuple(given or ())
            assert several == example.item.references
