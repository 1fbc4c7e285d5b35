"""A model small enough to train in a test: 0.1 M parameters that add two digits, half of the time
rightly."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer_support import SUMS, ExactTransport, build_calling, build_tiny


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny model, built once a session, also where several processes test at
    once."""
    shared = tmp_path_factory.getbasetemp()
    if shared.name.startswith("popen-"):
        shared = shared.parent
    target = shared / "tiny-model"
    if not target.is_dir():
        beside = tmp_path_factory.mktemp("building") / "tiny"
        build_tiny(beside)
        try:
            beside.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


@pytest.fixture(scope="session")
def sums_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sums of two digits as a data set."""
    path = tmp_path_factory.mktemp("data") / "sums.jsonl"
    rows = ({"question": f"{a}+{b}=", "answer": str(a + b)} for a, b in SUMS)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def loaded() -> None:
    """What a run imports. At its end a run has Python look for garbage, which is not in there."""
    import assay.trainer.recipes.train  # noqa: F401

    gc.collect()
    gc.freeze()


@pytest.fixture
def drawn() -> None:
    """For a test that looks at a run's curves."""


@pytest.fixture(autouse=True)
def no_curves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's panels are found and not drawn, which takes longer than its steps."""
    if "drawn" not in request.fixturenames:
        from assay.trainer.records import plots

        monkeypatch.setattr(plots, "draw", lambda rows, *_args, **_kwargs: plots.panels(rows))


@pytest.fixture
def tiny_config(tiny_model: Path, sums_file: Path) -> Callable[..., Any]:
    """Makes a Config for the tiny model; keyword arguments are sections with what differs."""
    from assay.trainer.settings import config

    def make(**sections: dict[str, Any]) -> config.Config:
        tree: dict[str, dict[str, Any]] = {
            "model": {"name": str(tiny_model), "device": "cpu", "precision": "float32"},
            "data": {"source": "jsonl", "path": str(sums_file)},
            "reward": {"verifier": "exact", "timeout_s": 30},
            "optim": {"learning_rate": 4e-4},
            "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 4},
            "eval": {"prompts": 20, "batch_size": 20, "show": 3},
            "run": {"steps": 4, "checkpoint_every": 0, "report_to": []},
        }
        for name, values in sections.items():
            tree.setdefault(name, {}).update(values)
        return config.build(tree, origin="test")

    return make


@pytest.fixture
def adding(tiny_config: Callable[..., Any], tmp_path_factory: Any) -> Callable[..., Any]:
    """Makes a Config of episodes in which an untrained model calls a tool; see build_calling."""
    folder = tmp_path_factory.mktemp("adding")
    build_calling(folder / "model")
    told = [
        {"question": f"GO{n}GO{m}", "answer": str(n), "worked": "GO3 GO3 GO3 GO3"}
        for n in (1, 2, 3)
        for m in (1, 2, 3)
    ]
    rows = "".join(json.dumps(row) + "\n" for row in told)
    (folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    world = f"{Path(__file__).with_name('environment_again.py')}:Adds"

    def make(episodes: Any = None, method: Any = None, **sections: Any) -> Any:
        own = {"environment": world, "format": "tagged", "turns": 3, **(episodes or {})}
        sections["data"] = {"path": str(folder / "rows.jsonl"), **sections.get("data", {})}
        sections["model"] = {"name": str(folder / "model")}
        sections.setdefault("eval", {"prompts": 3})
        return tiny_config(method={"episodes": own, **(method or {})}, **sections)

    return make


@pytest.fixture
def exact_transport() -> type[ExactTransport]:
    """The class of the judge in this process."""
    return ExactTransport


@pytest.fixture
def train(loaded: None, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Trains in a folder (a new one, or one to continue), without a word; gives the rows of
    metrics.jsonl."""
    import io

    import torch
    from rich.console import Console

    from assay.kit.runs.environment import calm
    from assay.kit.runs.records import read_rows
    from assay.trainer.recipes.train import run
    from assay.trainer.records import folder

    calm()
    torch.set_num_threads(1)

    def go(config: Any, name: str = "run", transport: Any = ExactTransport) -> list[dict[str, Any]]:
        path = tmp_path / name
        where = folder.RunFolder(path) if path.is_dir() else folder.create(config, name, path)
        run(config, where, Console(file=io.StringIO()), transport=transport)
        return read_rows(where.metrics)

    return go


@pytest.fixture
def curve() -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Rows without what the clock says."""
    return lambda rows: [
        {key: value for key, value in row.items() if not key.endswith("_s")} for row in rows
    ]
