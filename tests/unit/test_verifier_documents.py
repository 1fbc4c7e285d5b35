"""`structure`: trees against the library zss, tables in two notations, charts, outlines, bounds."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import zss
from hypothesis import given
from hypothesis import strategies as st

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Candidate,
    JsonValue,
    Judgement,
    ParameterValue,
    Unjudgeable,
    VerifierItem,
)
from assay.verifiers_extra.documents.outlines import outline
from assay.verifiers_extra.documents.structure import MAX_STEPS, structure
from assay.verifiers_extra.documents.tables import TableCell, read_table, table_of
from assay.verifiers_extra.documents.trees import OrderedTree, TreeNode, text_cost, tree_distance

WORDS = st.text(alphabet="abcd ", max_size=5).map(lambda text: " ".join(text.split()))
GRIDS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(WORDS, min_size=width, max_size=width), min_size=1, max_size=4)
)
CHART: dict[str, JsonValue] = {"sales": {"2021": 10, "2022": 12.5}, "unit": "USD"}


def judge(response: str, reference: JsonValue, **given: ParameterValue) -> Judgement:
    texts = (reference,) if isinstance(reference, str) else ()
    item = VerifierItem(
        Candidate(response),
        references=texts,
        data=None if texts else reference,
        parameters=structure.spec.complete(given),
    )
    judgement = structure.judge(item)
    assert structure.glance(item) in (None, judgement)
    return judgement


def html(grid: list[list[str]]) -> str:
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in grid)
    return f"<table>{rows}</table>"


def markdown(grid: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in grid]
    return "\n".join([lines[0], "|" + "---|" * len(grid[0]), *lines[1:]])


def cost(one: TreeNode, other: TreeNode) -> float:
    return 1.0 if one.kind != other.kind else text_cost(one.text, other.text)


def as_zss(node: TreeNode) -> Any:
    made = zss.Node(node)
    for child in node.children:
        made.addkid(as_zss(child))
    return made


def tree(draw: random.Random, size: int) -> TreeNode:
    nodes = [TreeNode("a")]
    for _ in range(size - 1):
        node = TreeNode(draw.choice("ab"), draw.choice(["", "x", "xy", "yz"]))
        draw.choice(nodes).children.append(node)
        nodes.append(node)
    return nodes[0]


def test_the_distance_is_that_of_zss() -> None:
    draw = random.Random(7)
    for _ in range(300):
        one, other = tree(draw, draw.randint(1, 9)), tree(draw, draw.randint(1, 9))
        wanted = zss.distance(
            as_zss(one),
            as_zss(other),
            get_children=zss.Node.get_children,
            insert_cost=lambda _: 1.0,
            remove_cost=lambda _: 1.0,
            update_cost=lambda a, b: cost(a.label, b.label),
        )
        found = tree_distance(OrderedTree(one), OrderedTree(other), cost)
        assert found == pytest.approx(wanted, abs=1e-9)


@given(GRIDS)
def test_html_and_markdown_are_the_same_table(grid: list[list[str]]) -> None:
    read = [[cell.text for cell in row] for row in read_table(html(grid))]
    assert read == [[cell.text for cell in row] for row in read_table(markdown(grid))] == grid
    assert judge(html(grid), markdown(grid)).verdict == "correct"
    assert judge(markdown(grid), grid).reward == 1.0


@given(GRIDS, GRIDS)
def test_similarity_is_symmetric_and_1_for_equals_alone(
    one: list[list[str]], other: list[list[str]]
) -> None:
    found = judge(html(one), html(other)).reward
    assert found == pytest.approx(judge(html(other), html(one)).reward)
    assert 0.0 <= found <= 1.0
    assert (found == 1.0) == (one == other)


def test_teds_of_a_worked_table() -> None:
    """7 nodes; one cell of "2" read as "3" costs 1 of them, and its loss the same."""
    right = [["a", "b"], ["1", "2"]]
    assert judge(html([["a", "b"], ["1", "3"]]), right).reward == pytest.approx(1 - 1 / 7)
    assert judge(html([["a", "b"], ["1"]]), right).reward == pytest.approx(1 - 1 / 7)
    assert judge(html([["a", "b"], ["1", "3"]]), right, shape_only=True).reward == 1.0
    spanned = "<table><tr><td colspan=2>a</td></tr><tr><td>1</td><td>2</td></tr></table>"
    assert read_table(spanned)[0][0] == TableCell("a", 2, 1)  # type: ignore[index]
    assert judge(spanned, right).reward == pytest.approx(1 - 2 / 7)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no table", "there is no table"),
        ("<table><tr><td>1", "not closed"),
        ("<table></table>", "no cells"),
        ("<table><td>1</td></table>", "outside of a row"),
        ("<table><tr><td><table></table></td></tr></table>", "within a table"),
        ("<think><table><tr><td>1</td></tr></table>", "thought"),
    ],
)
def test_what_is_no_table(text: str, why: str) -> None:
    judgement = judge(text, [["1"]])
    assert (judgement.verdict, judgement.reward) == ("unparsed", 0.0)
    assert why in judgement.explanation


def test_the_last_table_counts_and_an_empty_grid_is_bounded_by_at_least() -> None:
    right, wrong = html([["a", "b"], ["1", "2"]]), html([["c", "d"], ["8", "9"]])
    assert judge(right + wrong, right).reward < 0.5
    assert judge(wrong + right, right).reward == 1.0
    empty = judge(html([["", ""], ["", ""]]), right)
    assert empty.reward == pytest.approx(3 / 7)
    assert judge(html([["", ""], ["", ""]]), right, at_least=0.5).verdict == "incorrect"


def test_values_of_a_chart() -> None:
    assert judge(f"So:\n```json\n{json.dumps(CHART)}\n```", CHART, kind="chart").reward == 1.0
    off = {"Sales": {"2022": "12.6", "2021": "10.0"}, "unit": "usd"}
    assert judge(json.dumps(off), CHART, kind="chart").reward == pytest.approx(4 / 6)
    assert judge(json.dumps(off), CHART, kind="chart", tolerance=0.01).reward == 1.0
    dumped = CHART | {f"k{n}": n for n in range(27)}
    assert judge(json.dumps(dumped), CHART, kind="chart").reward == pytest.approx(6 / 33)
    twice = {"unit": "USD", "Unit": "EUR", "sales": CHART["sales"]}
    assert judge(json.dumps(twice), CHART, kind="chart").reward == pytest.approx(6 / 7)
    assert judge('{"unit": NaN}', CHART, kind="chart").verdict == "unparsed"


def test_records_of_a_chart_in_any_order_and_as_a_table() -> None:
    rows: list[JsonValue] = [{"x": "Jan", "y": 3}, {"x": "Feb", "y": 4}]
    assert judge(json.dumps(rows[::-1]), rows, kind="chart").reward == 1.0
    assert judge(json.dumps([3, 4]), [4, 3], kind="chart").reward == 0.0
    grid = "| month | y |\n|---|---|\n| Feb | 4 |\n| Jan | 3.0 |"
    assert judge(grid, {"Jan": {"y": 3}, "Feb": {"y": 4}}, kind="chart").reward == 1.0


def test_an_outline_is_of_headings_and_lists() -> None:
    root = outline("# A\ntext\n- b\n    - c\n- d\n```\n# code\n```\n## E ##\n1. f\n# G")
    [first, last] = root.children
    assert [node.text for node in first.children] == ["b", "d", "e"]
    assert [node.text for node in first.children[0].children] == ["c"]
    assert last.children == []
    right = "# A\n- b\n- c"
    assert judge("# A\n- c", right, kind="outline").reward == pytest.approx(2 / 3)
    assert judge("A, b, c", right, kind="outline").verdict == "unparsed"


def test_bounds_are_verdicts_of_responses_and_faults_of_references() -> None:
    deep = "\n".join(f"{' ' * n}- x{n}\n{' ' * n}- y" for n in range(190))
    wide = html([["x" * 30] * 30] * 30)
    letters = html([["".join(random.Random(n).choices("abc", k=560))] for n in range(80)])
    for text, kind in ((deep, "outline"), (wide, "table"), (letters, "table")):
        with pytest.raises(Unjudgeable, match="too large") as caught:
            judge("x", text, kind=kind)
        assert caught.value.reason == UNUSABLE_REFERENCE
    many = html([["x"] * 68] * 68)
    judgement = judge(many, [["x"] * 10] * 10)
    assert judgement.verdict == "unparsed"
    assert "too many to be compared" in judgement.explanation
    tree_ = OrderedTree(outline("\n".join(f"{' ' * n}- x" for n in range(150))))
    assert tree_.weight**2 < MAX_STEPS  # a chain has one keyroot


@pytest.mark.parametrize("bad", ["", [], [[]], [["1", None]], {"a": 1}, "no table", [["1"], 2]])
def test_references_that_are_no_table(bad: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge("| a |\n|---|\n| 1 |", bad)
    assert caught.value.reason == UNUSABLE_REFERENCE
    assert table_of(bad) is None


@pytest.mark.parametrize("bad", [[], {}, "no data", {"A": 1, "a": 2}])
def test_references_that_are_no_chart(bad: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge('{"a": 1}', bad, kind="chart")
    assert caught.value.reason == UNUSABLE_REFERENCE
