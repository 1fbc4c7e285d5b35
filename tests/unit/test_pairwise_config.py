"""What does not go together in pairwise training, and what the settings say in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.explain.explanation import explain
from assay.trainer.settings import config as configs

OWN = ("data=rows.jsonl", "model=org/model")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method.pairwise.anchors=none"], "needs method.pairwise.anchors"),
        (
            ["method.pairwise.against=group"],
            r"group-in-pairs needs advantages of a group's rewards.*with critic \(method\.adv",
        ),
        (["reward.parameters={on_gap = 'abstain'}"], "made-up reward"),
        (
            ["method.loss.positive_lm_coef=0.1"],
            "positive-lm-loss .* needs rewards that say right or wrong",
        ),
        (
            ["method.shaping.cosine=true"],
            "cosine-length .* needs rewards that say right or wrong",
        ),
        (
            ["method.pairwise.anchors=data", "data.columns.anchor=''"],
            "needs data.columns.anchor",
        ),
        (["method.dynamic_sampling.enabled=true", "rollout.group_size=2"], "right and wrong"),
        (
            [
                "method.advantage.estimator=symmetric",
                "method.loss.kl_place=loss",
                "rollout.group_size=2",
            ],
            'needs method.pairwise.against = "group"',
        ),
    ],
)
def test_what_does_not_go_together_is_said(
    repository: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        configs.load(repository / "configs/pairwise_ppo.toml", [*OWN, *overrides])


@pytest.mark.parametrize(
    ("name", "overrides", "said"),
    [
        ("pairwise_ppo", [], "J = w, where w is the chance of beating the problem's anchor"),
        ("pairwise_ppo", [], "anchor: a column of the data"),
        (
            "pairwise_ppo",
            ["method.pairwise.anchors=best-of-n", "method.pairwise.reward=log-odds"],
            "J = log(w / (1 - w)) within +-5",
        ),
        (
            "pairwise_ppo",
            ["method.pairwise.anchors=best-of-n"],
            "the best of 8 samples of the initial policy, by the verifier reward-model",
        ),
        ("pairwise_group", [], "A = R - 1/2"),
        ("pairwise_group", [], "beating the other samples, mean over pairs"),
        ("pairwise_group", [], "a pair that the judge abstains from is a fault, never parity"),
    ],
)
def test_the_composition_is_told(
    repository: Path, name: str, overrides: list[str], said: str
) -> None:
    config = configs.load(repository / "configs" / f"{name}.toml", [*OWN, *overrides])
    lines = [line for section in explain(config).sections for line in section.lines]
    assert any(said in line for line in lines), lines
