"""The profiles of published systems on a running server; those that ask a model are in
`test_judge_verifiers_wire.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from assay.clients import Data, EmbeddedServices, Item, RewardClient, Turn
from assay.clients.types import Judgement

TABLE = "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>"
PLAN = (
    "<plan>\n1. Add the apples.\n2. Halve the sum.\n</plan>\n"
    "<execution>\n{}</execution>\n\\boxed{{{}}}"
)
DONE = ("1. Add the apples: 3 and 5 make 8.\n", "2. Halve the sum: 8 / 2 = 4.\n")
THOUGHT = "<think>Who?</think><search>capital of France</search>"


@pytest.fixture(scope="module")
def client() -> Iterator[RewardClient]:
    with EmbeddedServices(["reward"]) as services, RewardClient(services.address) as client:
        yield client


def judgement(client: RewardClient, *args: Any, **more: Any) -> Judgement:
    [result] = client.score([Item(*args, **more)])
    assert result.judgement is not None, result.fault
    return result.judgement


@pytest.mark.parametrize(
    ("done", "answer", "reward", "verdict"),
    [
        (DONE, 4, 1.0, "correct"),
        (DONE[::-1], 4, 0.5, "correct"),
        (DONE[:1], 4, 2 / 3, "correct"),
        (DONE, 5, 0.0, "incorrect"),
        ((), 4, 0.0, "correct"),
    ],
)
def test_e2c_is_a_right_answer_times_adherence(
    client: RewardClient, done: tuple[str, ...], answer: int, reward: float, verdict: str
) -> None:
    found = judgement(client, PLAN.format("".join(done), answer), reference="4", verifier="e2c")
    assert found.reward == pytest.approx(reward)
    assert found.verdict == verdict


def test_a_fault_of_e2cs_answer_is_the_fault_of_the_whole(client: RewardClient) -> None:
    [result] = client.score([Item("no plan", reference=" ", verifier="e2c")])
    assert result.fault is not None
    assert result.fault.reason == "UNUSABLE_REFERENCE"
    assert result.fault.metadata["component"] == "answer"


def test_deep_dxsearch_weighs_what_a_search_agent_did(client: RewardClient) -> None:
    def asked(*texts: str) -> tuple[Turn, ...]:
        roles = ("assistant", "tool")
        return tuple(
            Turn(roles[n % 2], text, from_policy=n % 2 == 0) for n, text in enumerate(texts)
        )

    end = "<think>So.</think><answer>{}</answer>"
    found = "Paris is the capital."
    for texts, reward in (
        ((THOUGHT, found, end.format("Paris")), 1.0),
        ((THOUGHT, "Nothing.", end.format("Paris")), 0.8),
        ((THOUGHT, found, end.format("Lyon")), 0.4),
        ((THOUGHT, found, "Paris"), 0.2),
        ((THOUGHT + f"<information>{found}</information>" + end.format("Lyon"),), 0.1),
    ):
        one = judgement(client, turns=asked(*texts), reference="Paris", verifier="deep-dxsearch")
        assert one.reward == pytest.approx(reward), texts
    [single] = client.score([Item(end, reference="Paris", verifier="deep-dxsearch")])
    assert single.fault is not None
    assert single.fault.metadata["component"] == "retrieval"


def test_unidocs_actions_have_rewards_of_their_own(client: RewardClient) -> None:
    for task, response, reference, reward in (
        ("retrieve", "[3, 7]", Data([3, 7]), 1.0),
        ("retrieve", "[3, 8]", Data([3, 7]), 0.5),
        ("rerank", "b > a", {"a": 0, "b": 1}, 1.0),
        ("crop", "[[0, 0, 10, 10]]", {"boxes": [[0, 0, 10, 20]]}, 0.5),
        ("answer", "the Eiffel Tower", "Eiffel Tower", 1.0),
    ):
        one = judgement(client, response, reference=reference, task=f"unidoc-{task}")
        assert one.verifier == "unidoc-actions"
        assert one.reward == pytest.approx(reward), task
        assert task in {part.name for part in one.components}
    [other] = client.score([Item("x", reference="y", verifier="unidoc-actions")])
    assert other.fault is not None
    assert other.fault.reason == "UNSUPPORTED_INPUT"


@pytest.mark.parametrize(
    ("response", "tokens", "reward"),
    [(r"\boxed{12}", 100, 1.5), (r"\boxed{12}", 513, 1.0), (r"\boxed{13}", 100, 0.0),
     (r"\boxed{12}", None, 1.0)],
)  # fmt: skip
def test_observe_r1_pays_right_answers_that_are_short(
    client: RewardClient, response: str, tokens: int | None, reward: float
) -> None:
    one = judgement(
        client, response, reference="12", verifier="observe-r1", response_token_count=tokens
    )
    assert one.reward == pytest.approx(reward)


def test_ocrverse_measures_each_kind_of_document(client: RewardClient) -> None:
    for task, response, reference, reward in (
        ("text", "kitten", "sitten", 5 / 6),
        ("formula", "x^2+1", "x^2+1", 1.0),
        ("table", TABLE.replace("2", "3"), TABLE, 6 / 7),
        ("chart", '{"2021": 10.2}', {"2021": 10}, 1.0),
        ("outline", "# A\n- c", "# A\n- b", 0.5),
    ):
        one = judgement(client, response, reference=reference, task=f"ocr-{task}")
        assert one.reward == pytest.approx(reward), task


@pytest.mark.parametrize("name", ["clinical-composite", "webgen-cascade", "bmgq"])
def test_what_asks_a_model_is_a_fault_without_one(client: RewardClient, name: str) -> None:
    [result] = client.score([Item("x", reference="y", verifier=name)])
    assert result.fault is not None
    assert result.reward is None
