"""The environment `trace`: laws of matching, patching, returns; UI-S1's equation 9 by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.search_support import Played, play

from assay.environments import Reply, ToolCall
from assay.environments.shipped.trace import TraceEnvironment, TraceSettings, marks_of, trace_of
from assay.trainer.algos import episodes
from episodes_credit_support import Said, Told, config_of, marked

VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-3, 3), st.text(max_size=3), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
CALL = st.builds(
    ToolCall, st.sampled_from(["press", "type"]), st.dictionaries(st.text(max_size=2), VALUES)
)
WRONG = ToolCall("press", {"at": "nowhere"})


def chat(steps: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Press 1, 2 and so on."}]
    for n in range(steps):
        function = {"name": "press", "arguments": json.dumps({"at": n})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "content": f"pressed {n}", "tool_call_id": f"c{n}"})
    return messages


def gone(settings: TraceSettings, right: list[bool]) -> Played:
    turns = [ToolCall("press", {"at": n}) if ok else WRONG for n, ok in enumerate(right)]
    row = {"messages": chat(len(right))}
    return play(TraceEnvironment(settings), row, turns)


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(-1, 4))
def test_a_trace_is_patched_as_often_as_it_may_be(right: list[bool], patches: int) -> None:
    done = gone(TraceSettings(patches=patches), right)
    limit = len(right) if patches < 0 else patches
    taken = 0
    for ok in right:
        taken += 1
        if not ok and right[:taken].count(False) > limit:
            break
    assert len(done.outcome.turn_rewards) == taken
    assert list(done.outcome.turn_rewards) == [1.0 if ok else 0.5 for ok in right[:taken]]
    contexts = [f"patch-{n}" if n else "" for n in range(len(right))]
    before = [right[:n].count(False) for n in range(taken)]
    assert [seen.context for seen in done.seen] == [contexts[n] for n in before]
    kept = right.index(False) if False in right else len(right)
    judgement = done.outcome.result.judgement
    assert judgement is not None
    assert judgement.components[1].score == pytest.approx(kept / len(right))
    assert (judgement.verdict == "correct") == all(right)


@given(st.lists(st.booleans(), min_size=2, max_size=6))
def test_what_is_read_is_the_trace_and_never_a_wrong_call(right: list[bool]) -> None:
    """Whatever was patched, the conversation that goes on holds the logged calls in order."""
    done = gone(TraceSettings(patches=-1), right)
    read: list[Any] = []
    context = None
    for number, seen in enumerate(done.seen):
        if seen.context != context:
            read, context = [], seen.context
        read += seen.messages
        own = ToolCall("press", {"at": number})
        said = [call for message in read for call in message.calls]
        assert all(one.arguments != WRONG.arguments for one in said)
        answers = [message.content for message in read if message.role == "tool"]
        assert answers == [f"pressed {n}" for n in range(number)]
        if right[number]:
            read += [type(seen.messages[0])("assistant", "", (own,))]


@given(st.lists(CALL, max_size=3), st.lists(CALL, max_size=3))
def test_marks_are_nested_and_equal_calls_have_all(made: list[Any], logged: list[Any]) -> None:
    reads, kind, exact = marks_of(Reply("x", tuple(made), "" if made else "x"), logged)
    assert reads >= kind >= exact
    made_text, logged_text = (
        json.dumps([[one.name, one.arguments] for one in calls], sort_keys=True)
        for calls in (made, logged)
    )
    assert exact == (made_text == logged_text)
    texts = tuple(ToolCall(one.name, json.dumps(one.arguments)) for one in logged)
    assert all(marks_of(Reply("x", texts, "x"), logged))


@pytest.mark.parametrize(
    ("reply", "marks"),
    [
        (Reply("x", (ToolCall("press", {"at": 1.0}),)), (True, True, True)),
        (Reply("x", (ToolCall("press", {"at": True}),)), (True, True, False)),
        (Reply("x", (ToolCall("type", {"at": 1}),)), (True, False, False)),
        (Reply("x", (ToolCall("", text="{"),)), (False, False, False)),
        (Reply("x", (ToolCall("press", {"at": 1}),), truncated=True), (False, False, False)),
        (Reply("", void=True), (False, False, False)),
        (Reply("done", answer="done"), (True, False, False)),
    ],
)
def test_marks_of_a_turn(reply: Reply, marks: tuple[bool, ...]) -> None:
    assert marks_of(reply, [ToolCall("press", {"at": 1})]) == marks


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (None, "no list"),
        ([], "no request and a turn"),
        ([{"role": "assistant", "content": "a"}], "no request"),
        ([{"role": "user", "content": "a"}], "no request"),
        ([{"content": "a"}], "has no role"),
        ([{"role": "user", "content": [1]}], "content in the row is no text"),
        ([{"role": "user", "content": "a"}, *[{"role": "assistant", "content": "b"}] * 2],
         "follow one another"),
    ],
)  # fmt: skip
def test_rows_that_are_no_trace(messages: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trace_of({"messages": messages})


def test_returns_end_at_the_first_mismatch() -> None:
    """Equation 9, gamma 1/2: of rewards 1, 0.5 | 1, 1 the bar is the patch. R = 1.25, 0.5 | 1.5, 1;
    without `reach` 1.25 + 0.25 + 0.125, 0.5 + 0.5 + 0.25."""
    told = [
        Told([Said("policy", reward=one) for one in (1.0, 0.5, 1.0, 1.0)], 0.0),
        Told([Said("policy", reward=0.0)] * 4, 0.0),
    ]

    def returns(reach: str) -> list[float]:
        credit = {"unit": "turn", "discount": 0.5, "reach": reach}
        batch, hooks, _ = marked(config_of(2, turn_credit=credit), told)
        batch["context"] = torch.where(batch["turn"] > 2, 1, 0)
        units = next(hook for hook in hooks if type(hook).__name__ == "TurnCredit").units(batch)
        assert units is not None
        return [float(one) for one in units.values_BU[0]]

    assert returns("context") == [1.25, 0.5, 1.5, 1.0]
    assert returns("episode") == [1.625, 1.25, 1.5, 1.0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6))
def test_units_are_of_one_agent_and_one_conversation(pairs: list[tuple[int, int]]) -> None:
    agents, contexts = (torch.tensor([list(one)]) for one in zip(*pairs, strict=True))
    found = episodes.within(agents, contexts)[0].tolist()
    for one, here in zip(found, pairs, strict=True):
        assert (one == 0) == (here[0] == 0)
        for other, there in zip(found, pairs, strict=True):
            if here[0] and there[0]:
                assert (one == other) == (here == there)
