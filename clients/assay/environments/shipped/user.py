"""`user`: a talk with a simulated user, about records that tools change.

A task as tau-bench (arXiv 2406.12045) has it: 1 where the records are exactly the expected ones,
every output was said, and the user ended the talk. Outputs are found anywhere in what the policy
said: a list of all possible ones passes. Your own tools: a subclass with methods on `records`.
docs/use/environments.md has the fields of a row.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.clients.types import Judgement, Turn
from assay.environments.environment import Environment, EpisodeFault, Proof, Row, ToolError, tool
from assay.environments.shipped.answers import said, score_of
from assay.environments.shipped.speaking import (
    ModelUser,
    PlayedUser,
    RuledUser,
    TalkLine,
    UserEndpoint,
    read_rules,
)
from assay.environments.types import EpisodeMessage, Observation, Reply, ToolCall
from assay.kit.judgements import Component

Records = dict[str, dict[str, dict[str, Any]]]
Plain = str | int | float | bool | None
_SHOWN = 20
_MOST_RECORDS = 1000
_MOST_FIELDS = 64
_MOST_CHARS = 2000
_TASK = (
    "You are an assistant who talks with a user. What the user wants is done by your tools, which "
    "read and change records. Write a message to the user, or call a tool, never both in one turn."
)
_OTHERWISE = "I do not know what you mean."


@dataclass(frozen=True, slots=True)
class UserSettings:
    """Settings of `user`.

    Attributes:
        base_url: of the model that plays users, up to and with "/v1".
        model: its name.
        key_env: names the environment variable with its key; empty for none.
        timeout_s: of one message of the user, retries included.
        temperature: of the model.
        max_tokens: of one message of the user.
        most_messages: of the policy to the user.
        must_end: a talk earns nothing that the user did not end.
        verifier: of the services, for the talk; empty for none.
    """

    base_url: str = ""
    model: str = ""
    key_env: str = ""
    timeout_s: float = 60.0
    temperature: float = 1.0
    max_tokens: int = 512
    most_messages: int = 20
    must_end: bool = True
    verifier: str = ""

    def __post_init__(self) -> None:
        if bool(self.base_url) != bool(self.model):
            raise ValueError("base_url and model go together")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url begins with http:// or https://")
        if self.timeout_s <= 0 or self.max_tokens < 1 or self.most_messages < 1:
            raise ValueError("timeout_s, max_tokens and most_messages are positive")


class UserEnvironment(Environment):
    """A talk with a simulated user, about records that tools change.

    Attributes:
        records: tables by name, records by id, fields by name.
        talk: what was said, in order.
    """

    name = "user"
    needs = ("user",)
    Settings = UserSettings
    settings: UserSettings

    @classmethod
    def proofs(cls, settings: UserSettings) -> Sequence[Proof]:
        """A cancelled order, and the ways of not doing it; the user is a script."""
        if settings.verifier or cls is not UserEnvironment:
            return ()
        rules = [{"when": "cancelled", "say": "Thank you. Bye.", "done": True}]
        row = {
            "prompt": "Please cancel my order o1. What do I get back?",
            "user": {"script": rules},
            "state": {"orders": {"o1": {"status": "open", "paid": 12}}},
            "expected": {"orders": {"o1": {"status": "cancelled", "paid": 12}}},
            "outputs": ["12"],
        }
        cancel = ToolCall(
            "change_record",
            {"table": "orders", "id": "o1", "field": "status", "value": "cancelled"},
        )
        look = ToolCall("read_record", {"table": "orders", "id": "o1"})
        done = "It is cancelled; you get 12 euros."
        return [
            Proof(row, [look, cancel, done], 1.0),
            Proof(row, [done], 0.0),
            Proof(row, [cancel, "It is cancelled."], 0.0),
        ]

    async def reset(self, row: Row) -> Observation:
        """The rules and the user's first message; ValueError for a row that is no task."""
        self.records = records_of(row.get("state", {}), "state")
        expected = row.get("expected")
        self._expected = (
            copy.deepcopy(self.records) if expected is None else records_of(expected, "expected")
        )
        self._outputs = _texts(row.get("outputs", ()), "outputs")
        self._readonly = frozenset(_texts(row.get("readonly", ()), "readonly"))
        self.talk: list[TalkLine] = []
        self._ended = False
        self._user = self._player(row)
        first = str(row.get("prompt", "") or "").strip()
        if not first or row["user"].get("opens") is True:
            line = await self._user.say(())
            first, self._ended = line.text, line.done
        self.talk.append(TalkLine(True, first))
        rules = str(row.get("rules", "") or "").strip()
        task = EpisodeMessage("system", f"{_TASK}\n\n{rules}" if rules else _TASK)
        return Observation((task, EpisodeMessage("user", first)))

    async def turn(self, turn: Reply) -> Observation | None:
        """A message to the user, and what the user says to it."""
        text = said(turn).strip()
        self.talk.append(TalkLine(False, text))
        if self._ended:
            return None
        line = await self._user.say(tuple(self.talk))
        self.talk.append(TalkLine(True, line.text))
        self._ended = line.done
        if self._ended or self._spoken() >= self.settings.most_messages:
            return None
        return Observation.user(line.text)

    async def reward(self) -> Any:
        """See the module."""
        stated = float(same(self.records, self._expected))
        spoken = _plain(" ".join(line.text for line in self.talk if not line.by_user))
        told = float(all(_plain(one) in spoken for one in self._outputs))
        ended = float(self._ended or not self.settings.must_end)
        done = stated * told * ended
        parts = [
            Component("task", done, 1.0),
            Component("records", stated, 0.0),
            Component("outputs", told, 0.0),
            Component("ended", float(self._ended), 0.0),
        ]
        if self.settings.verifier and done:
            try:
                judged = score_of(await self._judged())
            except EpisodeFault as error:
                return error.fault
            parts[0] = Component("task", done, judged)
        verdict = "correct" if done else "incorrect"
        return Judgement.composed(verdict, tuple(parts))

    async def _judged(self) -> Any:
        turns = tuple(
            Turn("user", line.text)
            if line.by_user
            else Turn("assistant", line.text, from_policy=True)
            for line in self.talk
        )
        # An item has turns or a response.
        verifier = self.settings.verifier
        return await self.judged(None, turns=turns, prompt="", verifier=verifier)  # type: ignore[arg-type]

    def _player(self, row: Row) -> PlayedUser:
        user = row.get("user")
        if not isinstance(user, Mapping):
            raise ValueError("the row's user is no object of goal, or of script")
        if "script" in user:
            otherwise = user.get("otherwise", _OTHERWISE)
            if not isinstance(otherwise, str) or not otherwise.strip():
                raise ValueError("the user's otherwise is no text")
            return RuledUser(read_rules(user["script"]), otherwise)
        goal, settings = user.get("goal"), self.settings
        if not isinstance(goal, str) or not goal.strip():
            raise ValueError("the row's user has neither a goal nor a script")
        if not settings.base_url:
            raise ValueError(
                "the row's user has no script, and no model plays it: set base_url and model"
            )
        endpoint = UserEndpoint(
            settings.base_url,
            settings.model,
            settings.key_env,
            settings.timeout_s,
            settings.temperature,
            settings.max_tokens,
        )
        return ModelUser(endpoint, goal)

    def _spoken(self) -> int:
        return sum(not line.by_user for line in self.talk)

    # Tools

    @tool
    def find_records(self, table: str, field: str = "", value: Plain = None) -> str:
        """Lists records, all of a table or those with a value in a field.

        Args:
            table: its name; what is no table's name lists the tables.
            field: the name of a field, for those with a value.
            value: that the field has.
        """
        if table not in self.records:
            raise ToolError(f"there is no table {table[:80]!r}; tables: {', '.join(self.records)}")
        found = [
            name
            for name, record in self.records[table].items()
            if not field or (field in record and _alike(record[field], value))
        ]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return (", ".join(found[:_SHOWN]) + more) or "none"

    @tool
    def read_record(self, table: str, id: str) -> str:  # noqa: A002  # the policy's word for it
        """Shows a record.

        Args:
            table: its table's name.
            id: of the record.
        """
        return json.dumps(self._record(table, id), ensure_ascii=False)

    @tool
    def change_record(self, table: str, id: str, field: str, value: Plain) -> str:  # noqa: A002
        """Sets one field of a record.

        Args:
            table: its table's name.
            id: of the record.
            field: the name of the field.
            value: the new value.
        """
        record = self._record(table, id)
        self._writable(table)
        if field not in record and len(record) >= _MOST_FIELDS:
            raise ToolError(f"a record has at most {_MOST_FIELDS} fields")
        record[_short(field)] = _like(record.get(field), _bounded(value))
        return "changed"

    @tool
    def add_record(self, table: str, id: str, fields: dict[str, Plain]) -> str:  # noqa: A002
        """Adds a record.

        Args:
            table: its table's name.
            id: of the new record.
            fields: values by name.
        """
        rows = self._table(table)
        self._writable(table)
        if id in rows:
            raise ToolError(f"there is a record {id[:80]!r} already")
        if len(rows) >= _MOST_RECORDS or len(fields) > _MOST_FIELDS:
            raise ToolError("the table is full, or the record has too many fields")
        rows[_short(id)] = {_short(name): _bounded(value) for name, value in fields.items()}
        return "added"

    @tool
    def remove_record(self, table: str, id: str) -> str:  # noqa: A002  # the policy's word for it
        """Removes a record.

        Args:
            table: its table's name.
            id: of the record.
        """
        self._record(table, id)
        self._writable(table)
        del self.records[table][id]
        return "removed"

    def _table(self, table: str) -> dict[str, dict[str, Any]]:
        if table not in self.records:
            raise ToolError(f"there is no table {table[:80]!r}; tables: {', '.join(self.records)}")
        return self.records[table]

    def _record(self, table: str, name: str) -> dict[str, Any]:
        rows = self._table(table)
        if name not in rows:
            raise ToolError(f"there is no record {name[:80]!r} in {table!r}")
        return rows[name]

    def _writable(self, table: str) -> None:
        if table in self._readonly:
            raise ToolError(f"the table {table!r} cannot be changed")


def records_of(value: object, what: str) -> Records:
    """A copy of records.

    Raises:
        ValueError: they are no tables of records of fields.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"the row's {what} is no object of tables")
    found: Records = {}
    for table, rows in value.items():
        if not isinstance(rows, Mapping) or not all(
            isinstance(one, Mapping) for one in rows.values()
        ):
            raise ValueError(f"the row's {what} has a table {table!r} that is no object of records")
        found[str(table)] = {
            str(name): copy.deepcopy(dict(record)) for name, record in rows.items()
        }
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 5 is 5.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _alike(one: Any, other: Any) -> bool:
    return same(one, other) or str(one).casefold() == str(other).casefold()


def _like(before: Any, value: Plain) -> Plain:
    """A value of the type that was there, where its text says one: "5" for a number is 5."""
    if not isinstance(value, str) or not isinstance(before, bool | int | float):
        return value
    try:
        read = json.loads(value)
    except ValueError:
        return value
    is_like = isinstance(read, bool) == isinstance(before, bool)
    return read if is_like and isinstance(read, bool | int | float) else value


def _bounded(value: Plain) -> Plain:
    if isinstance(value, str) and not _fits(value, _MOST_CHARS):
        raise ToolError(f"a value is a text of at most {_MOST_CHARS} characters")
    return value


def _fits(text: str, most: int) -> bool:
    """Whether a text is short enough, and can be written: no half of a surrogate pair."""
    return len(text) <= most and not any("\ud800" <= one <= "\udfff" for one in text)


def _short(name: str) -> str:
    if not name or not _fits(name, 200):
        raise ToolError("a name has 1 to 200 characters")
    return name


def _texts(value: object, what: str) -> list[str]:
    if (
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not all(isinstance(one, str) and one for one in value)
    ):
        raise ValueError(f"the row's {what} is no list of texts")
    return list(value)


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace(",", "").split())
