"""A verifier without state is a function with a decorator.

The decorator names it, the signature has its parameters, the docstring's first paragraph says what
it judges, and rows of examples are its self-test:

    @verifier("shout", isolation="inline")
    def shout(
        item: VerifierItem, *, marks: Annotated[int, Range(0, 9), "How many."] = 0
    ) -> Judgement:
        '''The response is the reference in capitals.'''

A parameter is keyword-only. Its annotation has its type (bool, int, float, str, tuple[str, ...] or
a `Literal` of texts), its description, and a `Range` or `OneOf` where there are bounds.

The rows stand in `<name>.jsonl` beside the module, or in the decorator, with the keys of `assay
check-verifier --cases`: "response", "reference" (a text, a list of texts or data), "params",
"prompt", "anchor" and "verdict"; besides, "data" (for a list of texts that is not a list of right
answers) and "response_token_count".
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from assay.reward_server.domain import (
    Candidate,
    Isolation,
    Judgement,
    Message,
    ParameterKind,
    ParameterSpec,
    Unjudgeable,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)

Row = Mapping[str, Any]
"""An example as data."""

_KINDS: dict[Any, ParameterKind] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    tuple[str, ...]: "string-list",
}
_ROW_KEYS = frozenset(
    {"response", "reference", "data", "anchor", "prompt", "params", "response_token_count"}
)


class ExampleError(ValueError):
    """The examples of a verifier cannot be read."""


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a number; None for no bound."""

    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values of a text, where a `Literal` cannot name them."""

    values: tuple[str, ...]


class FunctionVerifier(Verifier):
    """A function as a verifier.

    Attributes:
        function: takes an item, and the parameters by name.
    """

    def __init__(
        self,
        function: Callable[..., Judgement],
        spec: VerifierSpec,
        *,
        prepare: Callable[[], object] | None,
        glance: Callable[..., Judgement | None] | int | None,
        rows: Sequence[Row] | None,
    ) -> None:
        self.function = function
        self._spec = spec
        self._defaults = spec.defaults
        self._told = dict(spec.defaults or {})
        self._prepare = prepare
        self._glance = glance
        self._rows = rows

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return self._spec

    @cached_property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The rows, as items.

        Raises:
            ExampleError: a row is none, or there is no file of them.
        """
        return tuple(_examples(self._spec, self._located_rows()))

    def rows(self) -> list[Row]:
        """The examples as data.

        Raises:
            ExampleError: there is no file of them, or a line is not JSON.
        """
        return [row for _, row in self._located_rows()]

    def prepare(self) -> None:
        """Loads what is slow to load."""
        if self._prepare is not None:
            self._prepare()

    def glance(self, item: VerifierItem) -> Judgement | None:
        """Judges what is bounded; None for the rest."""
        glance = self._glance
        if glance is None:
            return None
        if isinstance(glance, int):
            return self.judge(item) if len(item.response()) <= glance else None
        parameters = item.parameters
        return glance(item, **(self._told if parameters is self._defaults else parameters))

    def judge(self, item: VerifierItem) -> Judgement:
        """Calls the function with the item and its parameters."""
        if item.parameters is self._defaults:
            return self.function(item)  # they stand in its signature
        return self.function(item, **item.parameters)

    def _located_rows(self) -> Iterator[tuple[str, Any]]:
        if self._rows is not None:
            for number, row in enumerate(self._rows, start=1):
                yield f"example {number} of {self._spec.name!r}", row
            return
        file = Path(inspect.getfile(self.function)).with_name(f"{self._spec.name}.jsonl")
        if not file.is_file():
            raise ExampleError(
                f"there is no {file.name} beside the module: write it, or pass examples=[...]"
            )
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                yield f"{file.name}:{number}", json.loads(line)
            except ValueError as error:
                raise ExampleError(f"{file.name}:{number}: not JSON: {error}") from None


def verifier(
    name: str,
    *,
    tasks: Sequence[str] | None = None,
    verdicts: Sequence[str] = ("correct", "incorrect"),
    rewards: tuple[float, float] = (0.0, 1.0),
    version: str = "1",
    description: str = "",
    isolation: Isolation = "process",
    needs_reference: bool = True,
    needs_group: bool = False,
    deterministic: bool = True,
    cacheable: bool = True,
    lazy: bool = False,
    prepare: Callable[[], object] | None = None,
    glance: Callable[..., Judgement | None] | int | None = None,
    examples: Sequence[Row] | None = None,
) -> Callable[[Callable[..., Judgement]], FunctionVerifier]:
    """Makes a verifier of a function that takes an item, and parameters by name.

    Args:
        name: kebab-case, unique on the server.
        tasks: tasks that are routed to it; by default one of its own name.
        verdicts: those that it gives, kebab-case.
        rewards: the least and the greatest reward, whatever its parameters.
        version: changes whenever some item would be judged otherwise.
        description: one sentence; by default the first paragraph of the docstring.
        isolation: "inline" judges in the server's own process and must be quick and safe on a
            megabyte of anything; "process" judges in a worker that is killed at the time-out.
        needs_reference: an item without reference is a fault.
        needs_group: items need a group_id.
        deterministic: equal items get equal judgements.
        cacheable: its judgements may come from the cache.
        lazy: it is prepared and tested at the first request.
        prepare: loads what is slow to load, before workers are forked.
        glance: judges in the server's own process what is bounded there, and gives None for the
            rest; a number is the most characters of a response to judge there.
        examples: the rows of the self-test; by default those of `<name>.jsonl` beside the module.

    Raises:
        TypeError: the signature is not that of a verifier; the message says what to write.
    """

    def decorate(function: Callable[..., Judgement]) -> FunctionVerifier:
        said = inspect.getdoc(function) or name
        spec = VerifierSpec(
            name=name,
            version=version,
            description=description or " ".join(said.partition("\n\n")[0].split()),
            tasks=(name,) if tasks is None else tuple(tasks),
            min_reward=rewards[0],
            max_reward=rewards[1],
            verdicts=tuple(verdicts),
            parameters=tuple(_parameters(name, function)),
            deterministic=deterministic,
            cacheable=cacheable,
            needs_reference=needs_reference,
            needs_group=needs_group,
            isolation=isolation,
            lazy=lazy,
        )
        return FunctionVerifier(function, spec, prepare=prepare, glance=glance, rows=examples)

    return decorate


def _parameters(name: str, function: Callable[..., Judgement]) -> Iterator[ParameterSpec]:
    """Reads the parameters from the signature.

    Raises:
        TypeError: one is not keyword-only, or not annotated as it must be.
    """
    hints = get_type_hints(function, include_extras=True)
    _, *rest = inspect.signature(function).parameters.values()
    for one in rest:
        if one.kind is not one.KEYWORD_ONLY:
            raise TypeError(
                f"verifier {name!r}: its function takes the item, and after * its parameters; "
                f"{one.name!r} is not keyword-only"
            )
        yield _parameter(name, one, hints.get(one.name))


def _parameter(name: str, one: inspect.Parameter, hint: Any) -> ParameterSpec:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    values = get_args(kind) if get_origin(kind) is Literal else ()
    bounds = Range()
    text = ""
    for note in notes:
        if isinstance(note, Range):
            bounds = note
        elif isinstance(note, OneOf):
            values = note.values
        elif isinstance(note, str):
            text = note
    kind = str if values else kind
    if kind not in _KINDS or not text or not all(isinstance(value, str) for value in values):
        raise TypeError(
            f"verifier {name!r}: annotate {one.name!r} as Annotated[TYPE, 'what it does'], TYPE "
            "being bool, int, float, str, tuple[str, ...] or a Literal of texts"
        )
    return ParameterSpec(
        one.name,
        _KINDS[kind],
        None if one.default is one.empty else one.default,
        text,
        values,
        bounds.minimum,
        bounds.maximum,
    )


def _examples(spec: VerifierSpec, rows: Iterable[tuple[str, Any]]) -> Iterator[VerifierExample]:
    for where, row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("verdict"), str):
            raise ExampleError(f'{where}: a row is an object with "response" and "verdict"')
        fields = {key: value for key, value in row.items() if key != "verdict"}
        unknown = fields.keys() - _ROW_KEYS
        if unknown:
            known = ", ".join(sorted(_ROW_KEYS))
            raise ExampleError(f"{where}: no key is named {min(unknown)!r}; there are {known}")
        try:
            yield VerifierExample(_item(spec, fields), row["verdict"])
        except (KeyError, TypeError, Unjudgeable) as error:
            raise ExampleError(f"{where}: {error}") from None


def _item(spec: VerifierSpec, fields: Mapping[str, Any]) -> VerifierItem:
    """The item of a row; references are read as the client reads them."""
    reference, data = fields.get("reference"), fields.get("data")
    texts = [reference] if isinstance(reference, str) else reference
    if not texts or not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
        texts, data = (), data if reference is None else reference
    prompt = fields.get("prompt")
    given = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in fields.get("params", {}).items()
    }
    return VerifierItem(
        Candidate(fields["response"]),
        references=tuple(texts),
        data=data,
        anchor=fields.get("anchor"),
        prompt=(Message("user", prompt),) if prompt else (),
        parameters=spec.complete(given),
        response_token_count=fields.get("response_token_count"),
    )
