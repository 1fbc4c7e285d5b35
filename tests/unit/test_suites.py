"""Suites: the shipped table against the files it names, forms of rows, mistakes in them."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from assay.clients.rows.tests import read_tests
from assay.kit.errors import ConfigError
from assay.trainer.core.suites import first_draw
from assay.trainer.data import suites
from assay.trainer.data.sources import RowTable
from assay.trainer.data.suites import find, known, load_suite, load_suites
from assay.trainer.settings import config as configs

NAMES = ("aime24", "aime25", "math500", "gsm8k", "gpqa", "humaneval+", "mbpp+", "ifeval")


def own(folder: Path, rows: list[dict[str, Any]], table: str) -> Path:
    """A TOML file of one's own with the suite `mine`, whose rows lie beside it."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head, _, rest = table.partition("---")
    path = folder / "mine.toml"
    path.write_text(f'[mine]\n{head}\n[mine.file]\npath = "rows.jsonl"\n{rest}')
    return path


def loaded(path: Path, **more: Any) -> suites.SuiteItems:
    ((suite, k),) = find(str(path), 1)
    return load_suite(suite, k, **more)


def test_the_named_suites_are_known() -> None:
    assert set(NAMES) <= set(known())
    for name, suite in known().items():
        table = suite.table
        assert table.says
        assert table.template_source
        assert table.file or table.hub, name
        if table.hub is not None:
            assert table.hub.name.count("/") == 1
            assert table.hub.split


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gpqa"])
def test_a_suite_fits_its_local_file(shared_data: Path, name: str) -> None:
    suite = known()[name]
    assert suite.table.file is not None
    if not (shared_data / suite.table.file.path).is_file():
        pytest.skip(f"{suite.table.file.path} is absent")
    items = load_suite(suite, 1, str(shared_data))
    assert len(items.problems) == suite.table.items == items.origin["of"]
    assert items.origin["digest"].startswith("sha256:")
    first = items.problems[0]
    assert first.task == name
    assert first.id.startswith(f"{name}/")
    assert first.question in first.messages[-1][1]
    assert all(bool(one.reference) != bool(one.tests) for one in items.problems)
    assert len({one.id for one in items.problems}) == len(items.problems)
    short = load_suite(suite, 4, str(shared_data), 5)
    assert short.problems == items.problems[:5]
    assert short.origin["items"] == 5


@pytest.mark.data
@pytest.mark.parametrize("name", ["humaneval+", "mbpp+"])
def test_the_right_program_passes_its_own_tests_and_a_wrong_one_does_not(
    shared_data: Path, name: str
) -> None:
    suite = known()[name]
    assert suite.table.file is not None
    path = shared_data / suite.table.file.path
    if not path.is_file():
        pytest.skip(f"{path.name} is absent")
    with gzip.open(path, "rt") as file:
        rows = [json.loads(next(file)) for _ in range(6)]
    for row, problem in zip(rows, load_suite(suite, 1, str(shared_data), 6).problems, strict=True):
        told = json.loads(problem.tests)
        read_tests(told)
        space: dict[str, Any] = {}
        exec(told["code"], space)  # benchmark code
        right: dict[str, Any] = {}
        exec(row["prompt"] + row["canonical_solution"], right)
        space["check"](right[row["entry_point"]])
        with pytest.raises((AssertionError, TypeError)):
            space["check"](lambda *_given: "nothing of the kind")


def test_the_oracle_compares_as_evalplus_does() -> None:
    def checks(answer: Any, given: Any, *, entry: str = "f", atol: float = 0, **keys: Any) -> bool:
        rows = suites.SuiteRows(oracle="o", entry_point="e", inputs=("i",), tolerance="t", **keys)
        row = {
            "prompt": "",
            "o": f"def {entry}(x): return x",
            "e": entry,
            "i": [[given]],
            "t": atol,
        }
        space: dict[str, Any] = {}
        exec(suites.oracle_tests(rows, row), space)
        try:
            space["check"](lambda _x: answer)
        except AssertionError:
            return False
        return True

    assert checks(3, 3)
    assert not checks(3, 4)
    assert checks(0.30000000000000004, 0.3)
    assert not checks(0.31, 0.3)
    assert checks(0.31, 0.3, atol=0.05)
    assert checks((1, 2), [1, 2])
    assert not checks([1, 2], [1, 2, 3])
    assert not checks([2, 1], [1, 2])
    assert checks([2, 1], [1, 2], unordered=("f",))
    assert not checks([2, 1], [1, 2], unordered=("g",))
    assert checks(7, 8, presence=("f",))
    assert not checks(None, 8, presence=("f",))


def test_the_oracle_gives_the_right_program_what_it_takes() -> None:
    """Tuples for lists, complex numbers for texts; and tests that test nothing are an error."""
    rows = suites.SuiteRows(oracle="o", entry_point="e", inputs=("i",))
    keyed = {"prompt": "", "o": "def f(x): return {x: 1}", "e": "f", "i": [[[1, [2]]]]}
    for program, given, want in (
        ("def f(x): return hash(x) and x", [[1, [2]]], (1, (2,))),
        ("def f(a, b): return (a + b).imag", ["0", "1j"], 1.0),
    ):
        space: dict[str, Any] = {}
        exec(suites.oracle_tests(rows, {**keyed, "o": program, "i": [given]}), space)
        space["check"](lambda *_given, want=want: want)
        with pytest.raises(AssertionError):
            space["check"](lambda *_given: "no")
    space = {}
    exec(suites.oracle_tests(rows, {**keyed, "o": "def f(x): raise OSError"}), space)
    with pytest.raises(RuntimeError, match="takes none of the inputs"):
        space["check"](lambda *_given: 1)


CHOICES = [
    {"id": f"q{n}", "q": f"Question {n}?", "right": f"r{n}", "w1": "a", "w2": "b", "w3": "c"}
    for n in range(40)
]
CHOICE = """verifier = "choice"
template = "{question} {A} {B} {C} {D}"
---id = "id"
prompt = "q"
options = ["right", "w1", "w2", "w3"]
"""


def test_options_are_shuffled_by_seed_and_item_alone(tmp_path: Path) -> None:
    items = loaded(own(tmp_path, CHOICES, CHOICE))
    for row, problem in zip(CHOICES, items.problems, strict=True):
        options = problem.messages[0][1].removeprefix(f"{row['q']} ").split(" ")
        assert sorted(options) == sorted([row["right"], "a", "b", "c"])
        assert options["ABCD".index(str(problem.reference))] == row["right"]
    letters = Counter(str(one.reference) for one in items.problems)
    assert set(letters) == set("ABCD")
    backwards = loaded(own(tmp_path, CHOICES[::-1], CHOICE))
    assert {p.id: p.messages for p in backwards.problems} == {
        p.id: p.messages for p in items.problems
    }
    seeded = loaded(own(tmp_path, CHOICES, f"seed = 1\n{CHOICE}"))
    assert [p.reference for p in seeded.problems] != [p.reference for p in items.problems]


def test_several_columns_are_one_reference(tmp_path: Path) -> None:
    rows = [{"prompt": "Go", "ids": ["a:b"], "kwargs": [{"n": 1}]}]
    table = 'verifier = "ifeval"\n---record = ["ids", "kwargs"]\n'
    (problem,) = loaded(own(tmp_path, rows, table)).problems
    assert problem.id == "mine/1"
    assert json.loads(str(problem.reference)) == {"ids": ["a:b"], "kwargs": [{"n": 1}]}


PLAIN = 'verifier = "math"\n---id = "id"\nreference = "a"\n'
ROWS = [{"id": n, "prompt": f"{n}+1=", "a": str(n + 1)} for n in range(3)]


@pytest.mark.parametrize(
    ("rows", "table", "message"),
    [
        (ROWS, f"items = 4\n{PLAIN}", "has 3 rows, and the suite 4 items"),
        (ROWS, PLAIN.replace('"a"', '"b"'), "no column 'b' for the reference"),
        (ROWS, PLAIN + 'record = ["x"]\n', "row 1: no column 'x'"),
        ([*ROWS, ROWS[0]], PLAIN, "has an id twice"),
        (ROWS, PLAIN.replace('verifier = "math"', ""), "verifier is missing"),
        (ROWS, f"verifer = 1\n{PLAIN}", "verifer is not a setting"),
        (
            ROWS,
            PLAIN.replace("---", 'template = "{nothing}"\n---'),
            "data.template names {nothing}",
        ),
    ],
)
def test_a_wrong_table_is_said_in_one_line(
    tmp_path: Path, rows: list[dict[str, Any]], table: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(own(tmp_path, rows, table))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("suites_given", "message"),
    [
        (["aime42"], "there is no suite 'aime42'; did you mean"),
        (["aime24@0"], "write a number of samples behind @"),
        (["aime24@many"], "write a number of samples behind @"),
        (["aime24", "aime24@8"], "names 'aime24' twice"),
        (["absent.toml"], "absent.toml"),
    ],
)
def test_a_wrong_name_is_said(suites_given: list[str], message: str) -> None:
    given = configs.build({"eval": {"suites": suites_given}}, origin="test").eval
    with pytest.raises(ConfigError) as caught:
        load_suites(given)
    assert message in str(caught.value)


def test_names_carry_their_number_of_samples(tmp_path: Path, monkeypatch: Any) -> None:
    path = own(tmp_path, ROWS, PLAIN)
    tree = {"eval": {"suites": [f"{path}:mine@8"], "suite_items": 2, "temperature": 0.6}}
    (items,) = load_suites(configs.build(tree, origin="test").eval)
    assert (items.samples, len(items.problems)) == (8, 2)
    elsewhere = tmp_path / "data"
    elsewhere.mkdir()
    (elsewhere / "rows.jsonl").write_text(json.dumps({"id": "n", "prompt": "1", "a": "1"}) + "\n")
    monkeypatch.setenv("ASSAY_DATA", str(elsewhere))  # before what lies beside the TOML file
    (items,) = load_suites(configs.build(tree, origin="test").eval)
    assert [one.id for one in items.problems] == ["mine/n"]


def test_a_gated_suite_says_what_to_do(tmp_path: Path, monkeypatch: Any) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise ConfigError("data set 'Idavidrein/gpqa' cannot be loaded: 401")

    monkeypatch.setattr(suites, "hub_table", refused)
    with pytest.raises(ConfigError) as caught:
        load_suite(known()["gpqa"], 1, str(tmp_path))
    said = str(caught.value)
    assert (
        "it is gated: accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa" in said
    )
    assert "hf auth login" in said
    assert "put gpqa_diamond.jsonl.gz into the folder" in said


def test_the_hub_is_asked_as_the_table_says(tmp_path: Path, monkeypatch: Any) -> None:
    asked = []

    def answered(*given: Any, **_: Any) -> Any:
        asked.append(given)
        rows = [{"question": "1+1", "answer": "so\n#### 2"}] * 1319
        return RowTable(rows, "openai/gsm8k main test", "fingerprint:x")

    monkeypatch.setattr(suites, "hub_table", answered)
    items = load_suite(known()["gsm8k"], 1, str(tmp_path), 2)
    assert asked == [("openai/gsm8k", "main", "test", "")]
    assert [one.reference for one in items.problems] == ["2", "2"]
    assert [one.id for one in items.problems] == ["gsm8k/1", "gsm8k/2"]


def test_suites_draw_numbers_of_their_own() -> None:
    firsts = sorted(first_draw(name) for name in known())
    assert all(later - one >= 2**20 for one, later in itertools.pairwise(firsts))
    assert all(2**63 < one < 2**64 for one in firsts)
    assert first_draw("aime24") == first_draw("aime24")


def test_a_package_brings_a_suite(tmp_path: Path, monkeypatch: Any) -> None:
    package = tmp_path / "brings"
    package.mkdir()
    (package / "__init__.py").write_text("")
    own(package, ROWS, PLAIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    from importlib.metadata import EntryPoint

    point = EntryPoint("mine", "brings", suites.GROUP)
    monkeypatch.setattr(
        suites, "entry_points", lambda group: [point] if group == suites.GROUP else []
    )
    known.cache_clear()
    try:
        assert len(load_suite(known()["mine"], 1).problems) == 3
    finally:
        known.cache_clear()
