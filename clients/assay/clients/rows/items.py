"""The item of one row. Pure.

A `RowError` states what is wrong and what to write; the reader of the file adds file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.clients.rows.tests import read_tests
from assay.clients.types import Anchor, Data, Item, Parameter, Reference, ToolCall, Turn
from assay.kit.labels import trouble_of
from assay.kit.limits import MAX_ITEM_ID_BYTES
from assay.kit.reasons import Reason
from assay.kit.tool_calls import read_tool_call


class RowError(ValueError):
    """A row is wrong; the text says what to write, `reason` is the lexicon's for a fault."""

    def __init__(self, problem: str, reason: Reason = Reason.MALFORMED_ROW) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Keys:
    """The key of a row for each part of an item; an empty key is in no row.

    Attributes:
        id: a text or a whole number.
        turns: a dialogue in place of a response: messages with "role", "content" and "from_policy".
        tool_calls: calls that came apart from the response, as OpenAI's API has them, or "name" and
            "arguments"; turns have theirs under the same key. With them the response may be absent.
        reference: a text, a list of texts (each of them right), or data: an object or any other
            list.
        tests: tests of a program, in a shape of `assay.clients.rows.tests`.
        anchor: the text of a response to beat.
        prompt: a text, or messages with "role" and "content".
        params: an object of the verifier's parameters.
        labels: an object of texts, within the bounds of an item's labels; any other value stays
            with the row.
        cut: parts that a journal does not hold as a whole; such a row has no item.
    """

    id: str = "id"
    response: str = "response"
    reference: str = "reference"
    tests: str = "tests"
    anchor: str = "anchor"
    prompt: str = "prompt"
    verifier: str = "verifier"
    task: str = "task"
    params: str = "params"
    turns: str = "turns"
    tool_calls: str = "tool_calls"
    labels: str = "labels"
    cut: str = "journal_cut"


@dataclass(frozen=True, slots=True)
class Defaults:
    """The verifier and task of rows that name none, and the parameters of rows judged by them.

    A row's own parameters take precedence.
    """

    verifier: str = ""
    task: str = ""
    params: Mapping[str, Parameter] = field(default_factory=dict)


def id_of(keys: Keys, data: Mapping[str, Any], number: int) -> str | int:
    """The id of a row; its number among the rows where it has none.

    Raises:
        RowError: The id is neither a text nor a whole number, or too long.
    """
    row_id = data.get(keys.id)
    if row_id is None:
        return number
    if isinstance(row_id, bool) or not isinstance(row_id, str | int) or row_id == "":
        raise RowError(
            f"{keys.id!r} is {kind_of(row_id)}; write a text or a whole number, or leave it out"
        )
    if len(str(row_id).encode(errors="surrogatepass")) > MAX_ITEM_ID_BYTES:
        raise RowError(
            f"{keys.id!r} is longer than {MAX_ITEM_ID_BYTES} bytes; shorten it",
            Reason.MISSING_ITEM_ID,
        )
    return row_id


Responder = Callable[[Reference | None], str]


def item_of(
    keys: Keys,
    defaults: Defaults,
    data: Mapping[str, Any],
    item_id: str,
    respond: Responder | None = None,
) -> Item:
    """The item of a row. `respond` makes the response from the reference; None: the row has it.

    Raises:
        RowError: A key is absent or has a wrong value.
    """
    if data.get(keys.cut):
        raise RowError(
            f"the journal kept only the beginning of its {data[keys.cut]}; leave such rows out: "
            "`assay journal export --whole`",
            Reason.ITEM_TOO_LARGE,
        )
    reference = reference_of(keys, data)
    turns = _turns(keys, data) if respond is None else ()
    response = None
    calls = () if turns or respond is not None else _tool_calls(data, keys.tool_calls)
    if not turns and not (calls and data.get(keys.response) is None):
        response = _response(keys, data) if respond is None else respond(reference)
    own_verifier, own_task = _text(data, keys.verifier), _text(data, keys.task)
    verifier, task = own_verifier or defaults.verifier, own_task or defaults.task
    if not verifier and not task:
        raise RowError(
            "the row names neither verifier nor task; pass --verifier or --task",
            Reason.UNKNOWN_TASK,
        )
    params = _params(data, keys.params)
    if defaults.params and not own_verifier and (defaults.verifier or not own_task):
        params = {**defaults.params, **params}
    return Item(
        response=response,
        reference=reference,
        verifier=verifier,
        task="" if verifier else task,
        prompt=_prompt(data, keys.prompt),
        id=item_id,
        parameters=params,
        turns=turns,
        tool_calls=calls,
        labels=_labels(data.get(keys.labels)),
    )


def _response(keys: Keys, data: Mapping[str, Any]) -> str:
    if keys.response not in data:
        raise RowError(
            f"the row has no {keys.response!r}; add it, or name its key with --response-key",
            Reason.MISSING_RESPONSE,
        )
    response = data[keys.response]
    if not isinstance(response, str):
        raise RowError(
            f"{keys.response!r} is {kind_of(response)}; write the response as a text",
            Reason.MISSING_RESPONSE,
        )
    return response


def _turns(keys: Keys, data: Mapping[str, Any]) -> tuple[Turn, ...]:
    """The dialogue of a row without a response; none where it has one."""
    value = data.get(keys.turns)
    if data.get(keys.response) is not None or not isinstance(value, list):
        return ()
    turns = []
    for turn in value:
        if not isinstance(turn, dict) or not isinstance(turn.get("from_policy", False), bool):
            raise RowError(f"{keys.turns!r} holds {kind_of(turn)}; write messages of a dialogue")
        role, content = turn.get("role"), turn.get("content")
        if content is None and turn.get(keys.tool_calls):
            content = ""
        if not isinstance(role, str) or not isinstance(content, str):
            raise RowError(f"a turn of {keys.turns!r} lacks a text as 'role' or 'content'")
        calls = _tool_calls(turn, keys.tool_calls)
        turns.append(Turn(role, content, turn.get("from_policy", False), calls))
    return tuple(turns)


def _tool_calls(data: Mapping[str, Any], key: str) -> tuple[ToolCall, ...]:
    value = data.get(key)
    if value is None:
        return ()
    try:
        return tuple([ToolCall(*read_tool_call(one)) for one in value])
    except (TypeError, ValueError):
        raise RowError(
            f"{key!r} is {kind_of(value)}; write a list of objects with 'name' and 'arguments'"
        ) from None


def _labels(value: Any) -> Mapping[str, str]:
    """The labels of a row; what is none is a column of the caller's own."""
    texts = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    return value if texts and not trouble_of(value) else {}


def reference_of(keys: Keys, data: Mapping[str, Any]) -> Reference | None:
    """A row's reference, tests or anchor.

    Raises:
        RowError: It has more than one of them, or a wrong one.
    """
    value = data.get(keys.reference)
    if keys.tests not in data and keys.anchor not in data:
        return None if value is None else _reference(value, keys.reference)
    found = [key for key in (keys.reference, keys.tests, keys.anchor) if data.get(key) is not None]
    if len(found) > 1:
        options = {keys.reference: "reference", keys.tests: "tests", keys.anchor: "anchor"}
        raise RowError(
            f"the row has {found[0]!r} and {found[1]!r}, and a response is held against one; "
            f'leave one out, or pass --{options[found[1]]}-key "" to pass over it',
            Reason.UNUSABLE_REFERENCE,
        )
    if not found:
        return None
    (key,) = found
    value = data[key]
    if key == keys.reference:
        return _reference(value, key)
    if key == keys.anchor:
        return Anchor(_text(data, key))
    try:
        return read_tests(value)
    except ValueError as error:
        raise RowError(f"{key!r}: {error}", Reason.INVALID_TEST) from None


def _reference(value: Any, key: str) -> Reference:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return Data(value)
    if isinstance(value, list) and value:
        return value if all(isinstance(text, str) for text in value) else Data(value)
    hint = f', such as "{value}"' if isinstance(value, int | float) else ""
    raise RowError(
        f"{key!r} is {kind_of(value)}; write a text, a list of texts, or data as an object{hint}",
        Reason.UNUSABLE_REFERENCE,
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise RowError(f"{key!r} is {kind_of(value)}; write a text, or leave it out")
    return value or ""


def _prompt(data: Mapping[str, Any], key: str) -> str | list[dict[str, str]]:
    value = data.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    good = isinstance(value, list) and all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str)
        for m in value
    )
    if not good:
        raise RowError(
            f"{key!r} is {kind_of(value)}; write a text, or messages with 'role' and 'content'"
        )
    return [{"role": message["role"], "content": message["content"]} for message in value]


def _params(data: Mapping[str, Any], key: str) -> dict[str, Parameter]:
    value = data.get(key) or {}
    if not isinstance(value, dict):
        raise RowError(
            f"{key!r} is {kind_of(value)}; write an object of names and values",
            Reason.INVALID_PARAMETER,
        )
    for name, part in value.items():
        texts = isinstance(part, list) and all(isinstance(text, str) for text in part)
        if not texts and not isinstance(part, bool | int | float | str):
            raise RowError(
                f"{key!r} holds {kind_of(part)} for {name!r}; "
                "write a number, a text, true or false",
                Reason.INVALID_PARAMETER,
            )
    return value


def kind_of(value: object) -> str:
    """A plain name for the type of a JSON value."""
    names: dict[type, str] = {
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text" if value else "an empty text",
        list: "a list" if value else "an empty list",
        dict: "an object",
    }
    return names[type(value)]
