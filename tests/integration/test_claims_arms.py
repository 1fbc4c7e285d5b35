"""Each arm of each claim builds its run: settings that a change of the trainer refuses are found
here, and not by whoever repeats a claim."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiments import miniature, records, tasks
from experiments.claim import FIRST_SEED

ARMS = {
    name: sorted({arm for claim in records.method(name).CLAIMS for arm in claim.arms})
    for name in records.methods()
    if name != "critic_loss"  # whose arms have no settings
}


class Built(Exception):
    """A run came as far as its training."""


def everywhere(name: str) -> Iterator[Any]:
    """The modules of experiments that took a function of miniature.py by its name."""
    inner = getattr(miniature, name)
    for module in list(sys.modules.values()):
        ours = getattr(module, "__name__", "").startswith("experiments")
        if ours and getattr(module, name, None) is inner:
            yield module


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """What the runs of each method read, its models hardly trained."""
    learn, folders = miniature.pretrained, {}

    def pretrained(folder: Path, words: Any, draw: Any, shape: Any, **more: Any) -> Path:
        return learn(folder, words, draw, dataclasses.replace(shape, steps=4), **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "PREFERENCE_STEPS", 2)
        for module in everywhere("likely"):
            patch.setattr(module, "likely", lambda *_: 1.0)
        for module in everywhere("pretrained"):
            patch.setattr(module, "pretrained", pretrained)
        patch.setattr("experiments.code_prm.claims.written", lambda *_: [])
        patch.setattr("experiments.code_prm.claims.learn_prm", lambda *_: {})
        for name in ARMS:
            folders[name] = tmp_path_factory.mktemp(name)
            records.method(name).prepare(folders[name])
        yield folders


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arm"),
    [(name, arm) for name in ARMS for arm in ARMS[name] if not arm.startswith("sampled")],
)
def test_the_settings_of_an_arm_load(
    name: str, arm: str, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(config: Any, folder: Path, service: Any) -> None:
        del folder, service
        raise Built(config)

    for module in everywhere("train"):
        monkeypatch.setattr(module, "train", train)
    with pytest.raises(Built):
        records.method(name).run(arm, FIRST_SEED, tmp_path / "run", models[name])
