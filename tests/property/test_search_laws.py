"""The value-guided search (ReST-RL, arXiv 2508.19576): what it counts, and what it answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.methods.search.method import TURN, GuidedSearch, Searcher
from assay.trainer.methods.search.nodes import SearchNode, SearchTree, uct
from assay.trainer.methods.search.settings import SearchConfig
from assay.trainer.settings import config as configs
from rollouts_collecting_support import problems
from rollouts_slots_support import Numbers

END, LINE, LIMIT = 1, 9, 12


@given(
    value=st.floats(-1, 1), more=st.floats(0.01, 1), visits=st.integers(0, 50),
    parent=st.integers(1, 100),
)  # fmt: skip
def test_a_state_is_preferred_for_its_value_and_for_being_seen_less(
    value: float, more: float, visits: int, parent: int
) -> None:
    def score(value: float, visits: int, exploration: float = 0.2) -> float:
        return uct(value, visits, parent, exploration=exploration, eps=0.1)

    assert score(value + more, visits) > score(value, visits)
    assert score(value, visits) > score(value, visits + 1)
    assert score(value, visits, 0.0) == value


def written(request: Request) -> Response:
    chance = random.Random(f"{request.draw.number}-{request.index}-{request.turn}")
    ids = list(request.begun.ids if request.begun else ())
    while len(ids) < LIMIT and ids[-1:] != [END]:
        ids.append(chance.choice([2, 3, 4, LINE, END]))
    return Response(tuple(ids), "", None, ids[-1] != END)


def worth(states: Sequence[tuple[Any, tuple[int, ...]]]) -> list[float]:
    return [random.Random(f"{prompt}-{ids}").random() for prompt, ids in states]


def searched(iterations: int, **settings: Any) -> tuple[Searcher, list[Response], Any]:
    engine = ScriptedEngine(written, tokenizer=Numbers())
    config = SearchConfig(iterations, separator="9", **settings)
    searcher = Searcher(
        config, Sampler(engine, Sampling(LIMIT)), worth, lambda ids: " ".join(map(str, ids))
    )
    requests = [Request(Draw(n, problems(1)[0], (7, n)), 0) for n in range(5)]
    return searcher, searcher.answers(requests, lambda _done: None), engine.asked


@pytest.mark.parametrize("iterations", [1, 6])
def test_the_answer_is_the_written_response_of_the_highest_value(iterations: int) -> None:
    searcher, answers, asked = searched(iterations, problems=2)
    assert searcher.responses == len(asked)
    assert all(one.turn == TURN for one in asked)
    assert len({(one.draw.number, one.index) for one in asked}) == len(asked)
    begun = [len(one.begun.ids) if one.begun else 0 for one in asked]
    drawn = [len(written(one).ids) for one in asked]
    assert searcher.tokens == sum(drawn) - sum(begun)
    for number, answer in enumerate(answers):
        whole = [written(one).ids for one in asked if one.draw.number == number]
        values = worth([((7, number), ids) for ids in whole])
        assert answer.ids == whole[values.index(max(values))]
        assert answer.text
    if iterations == 1:
        assert set(begun) == {0}, "a choice among responses"
    else:
        assert any(begun)
        for one in asked:
            assert one.begun is None or one.begun.ids[-1] == LINE, "states end with a line"


@given(
    data=st.data(), rounds=st.integers(1, 8), samples=st.integers(1, 4),
    decisions=st.integers(1, 3),
)  # fmt: skip
def test_every_visit_is_counted_on_the_way_to_the_root(
    data: st.DataObject, rounds: int, samples: int, decisions: int
) -> None:
    tree = SearchTree(SearchConfig(rounds, samples, decisions))
    best = -2.0
    for _ in range(rounds):
        node = tree.select()
        if node.ended:
            tree.revisit(node)
            continue
        assert node.visible is None
        lines = data.draw(st.lists(st.integers(2, 4), min_size=samples, max_size=samples))
        values = {line: data.draw(st.floats(-1, 1)) for line in lines}
        answers = data.draw(st.lists(st.floats(-1, 1), min_size=samples, max_size=samples))
        wrote = [((*node.ids, line), (*node.ids, line, END), line == 4) for line in lines]
        tree.expand(node, wrote, [values[line] for line in lines], answers)
        best = max(best, *answers)
        assert node.visible
        assert len(node.visible) == min(decisions, len(set(lines)))
        hidden = [one for one in node.children.values() if one not in node.visible]
        assert all(one.value <= min(v.value for v in node.visible) + 1e-12 for one in hidden)
    assert tree.best is not None
    assert tree.best[0] == best

    def counted(node: SearchNode) -> None:
        if not node.children:
            return
        below = node.children.values()
        own = 1 if node.parent is not None else 0  # when it was first valued, or again
        assert node.visits >= sum(one.visits for one in below) + own
        assert min(one.value for one in below) - 1 <= node.value <= 1
        for one in below:
            counted(one)

    counted(tree.root)
    assert tree.root.visits == sum(one.visits for one in tree.root.children.values())


def test_a_search_needs_a_critic_and_one_process() -> None:
    with pytest.raises(ConfigError, match="needs a critic: its values guide the search"):
        configs.build({"method": {"search": {"iterations": 2}}}, origin="test")
    method = {"search": {"iterations": 2}, "advantage": {"estimator": "gae"}}
    with pytest.raises(ConfigError, match="in one process, not in 2"):
        GuidedSearch(configs.build({"method": method}, origin="test")).check_processes(2)
