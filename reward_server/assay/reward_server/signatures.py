"""Plain reward functions as verifiers: which shape one has, and how it is called. Pure.

    fn(response) and fn(response, reference)                            -> float | bool
    fn(prompts, completions, **columns)                  TRL's          -> list[float | None]
    fn(data_source, solution_str, ground_truth, extra_info=None) verl's -> float | dict(score=...)

The parameters' names tell them apart; further parameters need a default. A function is called with
parameters by name, once for each item: TRL's with lists of one. An object of TRL's shape may say
more of itself by attributes (`assay.environments.hosting`): `description`, `deterministic`, and
`conversational`, where it wants messages.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from assay.reward_server.domain import (
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    VERIFIER_FAILED,
    Component,
    Judgement,
    Message,
    ParameterSpec,
    ToolCall,
    Unjudgeable,
    VerifierItem,
    VerifierSpec,
)

MAX_REWARD = 1e6
"""Of a function that does not say `-> bool`: its rewards are -MAX_REWARD to MAX_REWARD."""

SHAPES = (
    "(response) or (response, reference), TRL's (prompts, completions, **columns), "
    "verl's (data_source, solution_str, ground_truth, extra_info=None), "
    "or decorate it with assay.reward_server.verifier"
)

_MOST_EXTRAS = 16
_VERL = ("data_source", "solution_str", "ground_truth", "extra_info")
_OF_A_TRAINER = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")
_DATA_SOURCE = ParameterSpec(
    "data_source", "string", "", "What verl's function gets as data_source."
)
_CONVERSATIONAL = ParameterSpec(
    "conversational", "bool", False, "The function gets messages, as TRL's of chat data do."
)

Shape: TypeAlias = Literal["plain", "trl", "verl"]


class ShapeError(ValueError):
    """The function has no shape that is known."""


class InterpreterExit(Exception):
    """A function called `exit`."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's shape and parameters.

    Attributes:
        named: its parameters.
        required: those without a default.
        open: it takes any others by name.
        is_bool: it says `-> bool`.
    """

    shape: Shape
    named: tuple[str, ...]
    required: tuple[str, ...]
    open: bool
    is_bool: bool

    def accepted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the values that the function takes."""
        return {name: value for name, value in values.items() if self.open or name in self.named}


def read_signature(name: str, function: object) -> tuple[Callable[..., object], Signature]:
    """The function, and its shape.

    Raises:
        ShapeError: it has none that is known; the text is one line that says what to write.
    """
    if not callable(function) or inspect.isclass(function):
        raise ShapeError(f"{name!r} is a {_kind(function)}, not a function; write {SHAPES}")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ShapeError(f"{name!r} is a coroutine or a generator; write a def that returns")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise ShapeError(f"{name!r} has no signature to read; write {SHAPES}") from None
    parameters = [
        one for one in signature.parameters.values() if one.kind is not one.VAR_POSITIONAL
    ]
    unnamed = any(one.kind is one.POSITIONAL_ONLY for one in parameters)
    plain = [one for one in parameters if one.kind is not one.VAR_KEYWORD]
    required = tuple(one.name for one in plain if one.default is one.empty)
    named = tuple(one.name for one in plain)
    shape = _shape(named, required)
    if shape is None or unnamed:
        raise ShapeError(f"no shape is known with the parameters {name}{signature}; write {SHAPES}")
    absent = [one for one in required if shape == "trl" and one in _OF_A_TRAINER]
    if absent:
        raise ShapeError(f"{name!r} needs {absent[0]!r}, which a trainer alone has; give a default")
    is_bool = signature.return_annotation in (bool, "bool")
    return function, Signature(shape, named, required, len(plain) < len(parameters), is_bool)


def _shape(named: tuple[str, ...], required: tuple[str, ...]) -> Shape | None:
    if "completions" in named:
        return "trl"
    if "solution_str" in named and "ground_truth" in named:
        return "verl" if set(required) <= set(_VERL) else None
    if named[:1] == ("response",):
        return "plain" if set(required) <= {"response", "reference"} else None
    return None


def spec_of(
    name: str, version: str, signature: Signature, function: Callable[..., object]
) -> VerifierSpec:
    """The description of a plain function, by default one that judges equal items alike."""
    own = getattr(function, "description", "")
    said = inspect.getdoc(function) if inspect.isroutine(function) else own
    first = " ".join((said or "").partition("\n\n")[0].split())
    needs = {"plain": "reference", "verl": "ground_truth", "trl": ""}[signature.shape]
    chat = () if hasattr(function, "conversational") else (_CONVERSATIONAL,)
    extra = {"plain": (), "verl": (_DATA_SOURCE,), "trl": chat}[signature.shape]
    deterministic = bool(getattr(function, "deterministic", True))
    sided = ("correct", "incorrect")
    return VerifierSpec(
        name=name,
        version=version,
        description=first or f"The function {name} of the operator's file.",
        tasks=(name,),
        min_reward=0.0 if signature.is_bool else -MAX_REWARD,
        max_reward=1.0 if signature.is_bool else MAX_REWARD,
        verdicts=sided if signature.is_bool else (*sided, "scored"),
        parameters=extra,
        deterministic=deterministic,
        cacheable=deterministic,
        needs_reference=needs in signature.required,
    )


class PlainFunction:
    """Judges items by calling a plain function.

    Raises:
        Unjudgeable: the function gave what is no reward (VERIFIER_FAILED, with its line), TRL's
            gave None (UNSUPPORTED_INPUT), or the reference has not what its parameters name
            (UNUSABLE_REFERENCE).
    """

    def __init__(self, name: str, signature: Signature, function: Callable[..., object]) -> None:
        self._name = name
        self._signature = signature
        self._function = function
        self._line = _line(function)

    def __call__(
        self, item: VerifierItem, *, data_source: str = "", conversational: bool = False
    ) -> Judgement:
        """The function's judgement; several right answers: the best for plain functions."""
        if self._signature.shape == "trl":
            return self._trl(item, conversational)
        if self._signature.shape == "verl":
            return self._verl(item, data_source)
        reference = "reference" in self._signature.named
        found = [
            self._call(self._signature.accepted({"response": item.response(), **values}))
            for values in (_alternatives(item) if reference else [{}])
        ]
        return max((self._scored(value) for value in found), key=lambda one: one.reward)

    def _trl(self, item: VerifierItem, conversational: bool) -> Judgement:
        conversational = conversational or bool(getattr(self._function, "conversational", False))
        told = _messages(item.prompt)
        plain = len(item.prompt) < 2 and not conversational
        prompt: object = item.prompt[0].content if plain and item.prompt else told
        completion: object = _messages(item.candidate.turns)
        if item.candidate.text is not None:
            completion = item.candidate.text
            if conversational:
                said = Message("assistant", completion, calls=item.candidate.calls)
                completion = _messages((said,))
        given = {**self._columns(item), "prompts": "" if plain and not told else prompt}
        values = {key: [value] for key, value in {**given, "completions": completion}.items()}
        found = self._call(self._signature.accepted(values))
        if isinstance(found, str | bytes | dict) or not hasattr(found, "__len__"):
            raise self._broken(f"returned a {_kind(found)}, not a list of one reward")
        rewards = list(found)  # type: ignore[call-overload]
        if len(rewards) != 1:
            raise self._broken(f"returned {len(rewards)} rewards for 1 completion")
        if rewards[0] is None:
            text = f"the function {self._name!r} gave None: it does not judge this item"
            raise Unjudgeable(UNSUPPORTED_INPUT, text)
        return self._scored(rewards[0])

    def _columns(self, item: VerifierItem) -> dict[str, Any]:
        """An object's keys; any other reference under the one name that the function asks for."""
        given = ("prompts", "completions")
        wanted = [name for name in self._signature.required if name not in given]
        value = _reference(item)
        columns: dict[str, Any] = {}
        if isinstance(value, dict):
            columns = {str(key): one for key, one in value.items() if key not in given}
        elif value is not None:
            columns["reference"] = value
            if len(wanted) == 1:
                columns[wanted[0]] = value
        lacking = [name for name in wanted if name not in columns]
        if lacking:
            text = f"the function {self._name!r} wants the column {lacking[0]!r}; "
            raise Unjudgeable(
                UNUSABLE_REFERENCE, f"{text}write an object as reference, with a key for each"
            )
        return columns

    def _verl(self, item: VerifierItem, data_source: str) -> Judgement:
        value = _reference(item)
        values: dict[str, Any] = {"data_source": data_source, "extra_info": None}
        values |= {"solution_str": item.response(), "ground_truth": value}
        if isinstance(value, dict) and "ground_truth" in value:
            values |= {key: value[key] for key in _VERL if key in value and key != "solution_str"}
        found = self._call(self._signature.accepted(values))
        if not isinstance(found, dict):
            return self._scored(found)
        if "score" not in found:
            raise self._broken("returned a dict without the key 'score'")
        judged = self._scored(found["score"])
        right = found.get("acc")
        verdict = judged.verdict
        if isinstance(right, bool) and not self._signature.is_bool:
            verdict = "correct" if right else "incorrect"
        extras = [(key, _number(one)) for key, one in found.items() if key != "score"]
        parts = [
            Component(key.replace("_", "-"), float(one), 0.0)
            for key, one in extras
            if isinstance(key, str) and one is not None and math.isfinite(one)
        ]
        return Judgement(
            judged.reward,
            verdict,
            (*judged.components, *parts[:_MOST_EXTRAS]),
            explanation=judged.explanation,
        )

    def _call(self, values: Mapping[str, Any]) -> object:
        try:
            return self._function(**values)
        except SystemExit as error:
            raise InterpreterExit().with_traceback(error.__traceback__) from None

    def _scored(self, value: object) -> Judgement:
        number = _number(value)
        if number is None:
            raise self._broken(f"returned a {_kind(value)}, not a number")
        if not math.isfinite(number):
            raise self._broken(f"returned {number:g}, which is not finite")
        verdict = "scored"
        if isinstance(number, bool):
            verdict = "correct" if number else "incorrect"
        return Judgement.composed(
            verdict,
            (Component("score", float(number)),),
            explanation=f"the function {self._name} gave {number:g}",
        )

    def _broken(self, what: str) -> Unjudgeable:
        at = f"; it stands at {self._line}" if self._line else ""
        return Unjudgeable(VERIFIER_FAILED, f"verifier {self._name!r} {what}{at}")


def _number(value: object) -> float | bool | None:
    """A number of Python, numpy or torch; None for what is none."""
    if not isinstance(value, bool | int | float) and callable(getattr(value, "item", None)):
        try:
            value = value.item()  # type: ignore[attr-defined]
        except (TypeError, ValueError, RuntimeError):
            return None
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 2**1000 else math.inf
    return value if isinstance(value, bool | float) else None


def _alternatives(item: VerifierItem) -> list[dict[str, Any]]:
    """What `reference` may be: each right answer, or the data; nothing where there is none."""
    if item.data is not None:
        return [{"reference": item.data}]
    if not item.references and item.anchor is None:
        return [{}]
    return [{"reference": text} for text in item.answers()]


def _reference(item: VerifierItem) -> Any:
    """The data, the one text or the list of texts; None where there is none."""
    if item.data is not None:
        return item.data
    if not item.references and item.anchor is None:
        return None
    texts = item.answers()
    return texts[0] if len(texts) == 1 else list(texts)


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    return [
        {"role": one.role, "content": one.content, **({"tool_calls": calls} if calls else {})}
        for one in messages
        for calls in [[_call(call) for call in one.calls]]
    ]


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _line(function: object) -> str:
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return "" if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _kind(value: object) -> str:
    return type(value).__name__
