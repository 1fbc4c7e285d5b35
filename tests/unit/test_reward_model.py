"""Settings, data and figures of `assay train-rm`: everything that needs no model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from assay.clients.judging import rendering
from assay.clients.rows.preferences import PairRow, StepRow
from assay.kit.errors import ConfigError
from assay.trainer.recipes.reward_model import config as configs
from assay.trainer.recipes.reward_model.commands import train_rm
from assay.trainer.recipes.reward_model.config import RmConfig
from assay.trainer.recipes.reward_model.data import load_rows

PAIRS = [
    {
        "prompt": f"Question {i}?",
        "chosen": f"good {j}",
        "rejected": f"bad {j}",
        "subset": f"s{i % 3}",
    }
    for i in range(20)
    for j in range(2)
]
STEPS = [
    {"problem": f"Question {i}?", "steps": ["one", "two"], "labels": [1, i % 2]} for i in range(20)
]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes rows to a file and gives its path."""

    def go(rows: list[dict[str, Any]], name: str = "rows.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return go


def make(paths: list[str], **sections: dict[str, Any]) -> RmConfig:
    tree: dict[str, dict[str, Any]] = {"data": {"paths": paths}, "eval": {"prompts": 5}}
    for name, values in sections.items():
        tree.setdefault(name, {}).update(values)
    return configs.build(tree, origin="test")


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"data": {"paths": []}}, "data.paths is missing"),
        ({"data": {"source": "hub", "paths": []}}, "data.name is missing"),
        ({"optim": {"batch": 8, "micro_batch": 3}}, "micro_batch = 3 does not divide"),
        ({"method": {"consistency": 1.0, "orders": "one"}}, "method.consistency needs"),
        ({"model": {"name": "tiny", "layers": 2}}, "set tiny.layers"),
        ({"method": {"kind": "pairwize"}}, "method.kind"),
        ({"tiny": {"hidden": 100}}, "tiny.hidden"),
        ({"optim": {"learning_rate": float("inf")}}, "optim.learning_rate"),
        ({"method": {"losses": "mse"}}, "did you mean method.loss"),
    ],
)
def test_wrong_settings_are_told(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make(["x.jsonl"], **sections)


def test_settings_survive_their_file(tmp_path: Path) -> None:
    config = make(["a", "b"], method={"kind": "prm", "loss": "mse"}, data={"only_subsets": ["s"]})
    path = tmp_path / "config.toml"
    path.write_text(configs.to_toml(config), encoding="utf-8")
    assert configs.load(path) == config


def test_no_prompt_stands_on_both_sides(write: Callable[..., str]) -> None:
    rows = load_rows(make([write(PAIRS)]))
    train, held_out = ({row.group for row in part} for part in (rows.train, rows.eval))
    assert len(held_out) == 5
    assert len(train) == 15
    assert not train & held_out
    assert len(rows.train) + len(rows.eval) == len(PAIRS)


def test_the_split_hangs_on_prompts_and_seed_alone(write: Callable[..., str]) -> None:
    def held_out(rows: list[dict[str, Any]], seed: int = 0) -> set[str]:
        return {row.group for row in load_rows(make([write(rows)], data={"seed": seed})).eval}

    assert held_out(PAIRS) == held_out(PAIRS[::-1])
    assert held_out(PAIRS) != held_out(PAIRS, seed=1)


def test_rows_of_an_evaluation_of_its_own_are_kept_out(write: Callable[..., str]) -> None:
    own = write([{**PAIRS[0], "prompt": " question  0? "}], "own.jsonl")
    rows = load_rows(make([write(PAIRS)], data={"eval_paths": [own]}, eval={"prompts": 0}))
    assert [row.group for row in rows.eval] == ["question 0?"]
    assert "question 0?" not in {row.group for row in rows.train}
    assert len(rows.train) == len(PAIRS) - 2


def test_subsets_and_limits(write: Callable[..., str]) -> None:
    path = write(PAIRS)
    rows = load_rows(make([path], data={"only_subsets": ["s1"], "max_rows": 3}))
    assert {row.subset for row in (*rows.train, *rows.eval)} == {"s1"}
    assert len(rows.train) == 3
    with pytest.raises(ConfigError, match="no rows of 's9'; there are s0, s1, s2"):
        load_rows(make([path], data={"only_subsets": ["s9"]}))


def test_bad_rows_stop_or_are_counted(write: Callable[..., str]) -> None:
    path = write([*PAIRS, {"prompt": "?", "chosen": "x", "rejected": "x"}])
    with pytest.raises(ConfigError, match=r"rows.jsonl:41: .*no preference.*data.bad_rows"):
        load_rows(make([path]))
    rows = load_rows(make([path], data={"bad_rows": "skip"}))
    assert rows.skipped == 1
    assert len(rows.train) + len(rows.eval) == len(PAIRS)


def test_nothing_to_learn_from_is_told(write: Callable[..., str]) -> None:
    with pytest.raises(ConfigError, match="no rows to learn from: 40 rows, 40 of them held out"):
        load_rows(make([write(PAIRS)], eval={"prompts": 20}))
    with pytest.raises(ConfigError, match="is not there"):
        load_rows(make(["absent.jsonl"]))


def test_kinds_read_their_rows(write: Callable[..., str]) -> None:
    steps = load_rows(make([write(STEPS)], method={"kind": "prm"}))
    assert all(isinstance(row, StepRow) for row in steps.train)
    assert all(isinstance(row, PairRow) for row in load_rows(make([write(PAIRS)])).train)
    with pytest.raises(ConfigError, match=r"rows.jsonl:1: 'steps' must be a list"):
        load_rows(make([write(PAIRS)], method={"kind": "prm"}))
    with pytest.raises(ConfigError, match=r"rows.jsonl:1: 'chosen' is missing"):
        load_rows(make([write(STEPS)]))


def test_local_data_sets_are_read(write: Callable[..., str], tmp_path: Path) -> None:
    write(PAIRS, "train.jsonl")
    data = {"source": "hub", "name": str(tmp_path)}
    rows = load_rows(make([], data=data))
    assert len(rows.train) + len(rows.eval) == len(PAIRS)
    with pytest.raises(ConfigError, match="split 'nothing', cannot be loaded"):
        load_rows(make([], data={**data, "split": "nothing"}))


def test_a_folder_is_made_and_taken_up_again(tmp_path: Path) -> None:
    config = make(["a"])
    made = configs.RUNS.create(config, "judge", tmp_path / "run")
    with pytest.raises(ConfigError, match="is not empty"):
        configs.RUNS.create(config, "judge", tmp_path / "run")
    again, changed = configs.RUNS.reopen(made.path, ["run.steps=7"])
    assert (again, changed.run.steps) == (made, 7)
    for fixed in ("optim.batch=2", "run.seed=1", "eval.prompts=3"):
        with pytest.raises(ConfigError, match="cannot change in a resumed run"):
            configs.RUNS.reopen(made.path, [fixed])
    with pytest.raises(ConfigError, match="is no run folder"):
        configs.RUNS.reopen(tmp_path, [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give a CONFIG.toml"),
        (["--resume"], "--resume needs a RUN_DIR"),
        (["--run-dir", "x", "--resume", "y"], "give one of them"),
    ],
)
def test_wrong_command_lines_are_told(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(train_rm, arguments)
    assert done.exit_code == 2
    assert says in done.output


def test_a_run_that_fails_before_it_begins_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "judge.toml"
    path.write_text('[data]\npaths = ["absent.jsonl"]\n', encoding="utf-8")
    done = CliRunner().invoke(train_rm, [str(path), f"run.dir={tmp_path / 'runs'}"])
    assert isinstance(done.exception, ConfigError)
    assert "absent.jsonl is not there" in str(done.exception)
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize(
    "name",
    ["rm-quickstart", "rm-pairwise", "rm-pointwise", "rm-critique", "rm-bradley-terry", "rm-steps"],
)
def test_shipped_configs_are_valid(repository: Path, name: str) -> None:
    assert configs.load(repository / "configs" / f"{name}.toml").run.steps > 0


def test_weights_that_are_sharded_are_refused() -> None:
    from accelerate.utils import DistributedType

    from assay.trainer.recipes.reward_model.run import check_whole

    for kind in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        with pytest.raises(ConfigError, match=f"asks for {kind.value}; launch with"):
            check_whole(kind)
    check_whole(DistributedType.MULTI_CPU)


def test_without_a_judge_service_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "entry_points", lambda group: [])
    with pytest.raises(ConfigError, match=r"assay-rl-genrm will show it.*pip install ./genrm"):
        rendering.open_renderer()
