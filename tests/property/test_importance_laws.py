"""Laws of the corrections of the sampler's probabilities, and of the loss that has one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algos_support import Batch, batches, close, law
from assay.kit.errors import ConfigError
from assay.trainer.algos.importance import importance_weights
from assay.trainer.core import objective
from assay.trainer.settings import config as configs
from assay.trainer.settings.method import Backend
from assay.trainer.settings.objective import CORRECTIONS, LossConfig

WAYS = st.sampled_from(sorted(CORRECTIONS))
LIMITS = st.tuples(st.floats(0, 0.9), st.floats(1.1, 10))


def weights(batch: Batch, sampler_BT: torch.Tensor, way: str, low: float, high: float) -> Any:
    one = CORRECTIONS[way]
    return importance_weights(
        batch.logps(1), sampler_BT, batch.mask_BT,
        sequence=one.sequence, mask=one.mask, low=low, high=high,
    )  # fmt: skip


@law
@given(batches(), WAYS, LIMITS)
def test_a_sampler_that_is_the_trainer_is_not_corrected(
    batch: Batch, way: str, limits: tuple[float, float]
) -> None:
    """Nor is one that tells nothing."""
    unknown_BT = torch.full_like(batch.logps(1), math.nan)
    for sampler_BT in (batch.logps(1), unknown_BT):
        found = weights(batch, sampler_BT, way, *limits)
        assert (found.weights_BT == 1).all()
        assert not found.outside_BT.any()


@law
@given(batches(), WAYS, LIMITS)
def test_inside_the_limits_is_the_ratio_and_outside_is_the_limit_or_nothing(
    batch: Batch, way: str, limits: tuple[float, float]
) -> None:
    low, high = limits
    new_BT, old_BT, keep_BT = batch.logps(1), batch.logps(2), batch.mask_BT
    found = weights(batch, old_BT, way, low, high)
    expected_BT = (new_BT - old_BT).exp()
    if CORRECTIONS[way].sequence:
        expected_BT = torch.stack(
            [(new - old)[keep].sum().clamp(-20, 20).exp().expand(new.shape)
             for new, old, keep in zip(new_BT, old_BT, keep_BT, strict=True)]
        )  # fmt: skip
    assert close(found.ratios_BT[keep_BT], expected_BT[keep_BT])
    inside_BT = keep_BT & ~found.outside_BT
    assert (found.weights_BT[inside_BT] == found.ratios_BT[inside_BT]).all()
    assert ((found.weights_BT[inside_BT] >= low) & (found.weights_BT[inside_BT] <= high)).all()
    beyond_N = found.weights_BT[found.outside_BT]
    over_N = found.ratios_BT[found.outside_BT] > high
    assert close(
        beyond_N,
        torch.zeros_like(beyond_N)
        if CORRECTIONS[way].mask
        else torch.full_like(beyond_N, low).masked_fill(over_N, high),
    )


@law
@given(batches(), WAYS, LIMITS, st.floats(1, 3))
def test_wider_limits_leave_no_more_outside(
    batch: Batch, way: str, limits: tuple[float, float], wider: float
) -> None:
    narrow = weights(batch, batch.logps(2), way, *limits)
    wide = weights(batch, batch.logps(2), way, limits[0] / wider, limits[1] * wider)
    assert not (wide.outside_BT & ~narrow.outside_BT).any()


@law
@given(batches(), WAYS, LIMITS)
def test_what_is_outside_of_the_mask_does_not_matter(
    batch: Batch, way: str, limits: tuple[float, float]
) -> None:
    calm = weights(batch, batch.logps(2), way, *limits)
    spoiled = weights(batch, batch.spoiled(batch.logps(2), 1e9), way, *limits)
    assert torch.equal(calm.weights_BT, spoiled.weights_BT)
    assert (calm.weights_BT[~batch.mask_BT] == 1).all()


def loss_of(sampler_BT: torch.Tensor, **settings: Any) -> tuple[objective.Outcome, torch.Tensor]:
    """The loss of two rows of three tokens, one of which is not in it, and its gradient."""
    logps_BT = torch.tensor([[-1.0, -2.0, -0.5], [-0.5, -0.25, -3.0]], requires_grad=True)
    batch = {
        "loss_mask": torch.tensor([[True, True, True], [True, True, False]]),
        "advantages": torch.tensor([[1.0] * 3, [-1.0] * 3]),
        "correct": torch.tensor([True, False]),
        "old_logps": torch.full((2, 3), math.nan),
        "sampler_logps": sampler_BT,
    }
    outcome = objective.policy_loss(
        logps_BT,
        torch.zeros(2, 3),
        batch,
        LossConfig(**settings),
        objective.count(batch),
        max_length=3,
    )
    outcome.loss.backward()
    assert logps_BT.grad is not None
    return outcome, logps_BT.grad


SAMPLER = torch.tensor([[-1.0, -1.5, -1.5], [-3.5, -0.25, -3.5]])


@pytest.mark.parametrize("way", CORRECTIONS)
def test_the_gradient_is_that_of_the_loss_times_a_constant(way: Any) -> None:
    """The weight has none: each token's gradient is the uncorrected one times its weight."""
    _, plain_BT = loss_of(SAMPLER)
    outcome, corrected_BT = loss_of(SAMPLER, importance_correction=way)
    one = CORRECTIONS[way]
    diff_BT = torch.tensor([[0.0, -0.5, 1.0], [3.0, 0.0, 0.0]])
    if one.sequence:
        diff_BT = diff_BT.sum(dim=1, keepdim=True).expand(2, 3)
    ratio_BT = diff_BT.exp()
    beyond_BT = (ratio_BT < one.low) | (ratio_BT > one.high)
    weight_BT = ratio_BT.clamp(one.low, one.high) if not one.mask else ratio_BT * ~beyond_BT
    assert close(corrected_BT, plain_BT * weight_BT)
    kept = torch.tensor([[True, True, True], [True, True, False]])
    sums = outcome.sums
    assert sums["importance_weight"][0] == pytest.approx(float(weight_BT[kept].sum()), rel=1e-6)
    assert sums["importance_ratio"][0] == pytest.approx(float(ratio_BT[kept].sum()), rel=1e-6)
    assert float(sums["importance_outside"][0]) == int(beyond_BT[kept].sum())
    assert ("importance_outside_rows" in sums) == one.sequence
    if one.sequence:
        assert [float(x) for x in sums["importance_outside_rows"]] == [1.0, 2.0]


@pytest.mark.parametrize("way", ["token-mask", "sequence-mask", "icepop"])
def test_a_batch_that_is_masked_whole_has_a_loss_of_zero(way: Any) -> None:
    outcome, gradient_BT = loss_of(torch.full((2, 3), -25.0), importance_correction=way)
    assert float(outcome.loss.detach()) == 0.0
    assert not gradient_BT.any()
    assert float(outcome.sums["importance_outside"][0]) == 5


@settings(max_examples=20)
@given(st.sampled_from(sorted(CORRECTIONS)))
def test_a_sampler_of_minus_infinity_makes_no_nan(way: Any) -> None:
    """A token that the sampler calls impossible has the largest ratio there is."""
    sampler_BT = torch.full((2, 3), -math.inf)
    outcome, gradient_BT = loss_of(sampler_BT, importance_correction=way)
    assert outcome.loss.isfinite()
    assert gradient_BT.isfinite().all()


def built(*overrides: str) -> configs.Config:
    return configs.build({}, ["data.path=rows.jsonl", "data.source=jsonl", *overrides], origin="t")


def test_vllm_is_corrected_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    key = "method.loss.importance_correction"

    def correction(*overrides: str) -> str:
        return built(*overrides).method.loss.importance_correction

    assert correction() == correction("rollout.backend=paged") == "none"
    vllm = "rollout.backend=vllm"
    assert correction(vllm) == correction(vllm, "method.loss.clip_high=0.28") == "token-truncate"
    assert correction(vllm, "method.loss={clip_high=0.28}") == "token-truncate"
    assert correction(vllm, f"{key}=none") == "none"
    assert correction(vllm, "method.loss={importance_correction='icepop'}") == "icepop"
    assert correction(vllm, "rollout.top_p=0.9") == "token-truncate"
    silent = correction(vllm, "rollout.top_p=0.9", "rollout.vllm.draws=engine")
    assert silent == "none", "it does not tell its probabilities"
    tree = {"method": {"loss": {"importance_correction": "sequence-mask"}}}
    written = configs.build(tree, [vllm], origin="t").method.loss.importance_correction
    assert written == "sequence-mask"
    kept = tmp_path / "config.toml"
    kept.write_text(configs.to_toml(built(vllm, f"{key}=none")), encoding="utf-8")
    assert configs.load(kept).method.loss.importance_correction == "none"
    assert built(vllm, "ablate=importance-correction").method.loss.importance_correction == "none"


@pytest.mark.parametrize(
    ("logprobs", "overrides", "told"),
    [
        ("none", (), 'which rollout.backend = "hf" does not tell; use "none"'),
        ("raw", ("rollout.temperature=0.6",), "gives those before temperature and filters"),
        ("raw", ("rollout.top_k=20",), "gives those before temperature and filters"),
        ("raw", ("rollout.top_p=0.9",), "gives those before temperature and filters"),
        ("raw", (), ""),
        ("processed", ("rollout.temperature=0.6", "rollout.top_k=20"), ""),
    ],
)
def test_a_correction_wants_the_probabilities_of_the_draw(
    monkeypatch: pytest.MonkeyPatch, logprobs: Any, overrides: tuple[str, ...], told: str
) -> None:
    engine = Backend("hf", "assay.trainer.core.build:make_hf", logprobs=logprobs)
    monkeypatch.setattr("assay.trainer.methods.loss.settings.engine_of", lambda _rollout: engine)
    for way in (*CORRECTIONS, "decoupled"):
        texts = (f"method.loss.importance_correction={way}", *overrides)
        if not told:
            built(*texts)
            continue
        with pytest.raises(ConfigError) as caught:
            built(*texts)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)
    built(*overrides)


def test_limits_are_a_range_and_have_values_of_their_own() -> None:
    limits = {way: LossConfig(importance_correction=way).importance_limits for way in CORRECTIONS}  # type: ignore[arg-type]  # the names of the setting
    assert limits["icepop"] == (0.5, 5.0)
    assert limits["token-truncate"] == (0.0, 2.0)
    given = LossConfig("ppo", importance_correction="icepop", importance_floor=0.8)
    assert given.importance_limits == (0.8, 5.0)
    with pytest.raises(ConfigError, match=r"importance_floor = 6 is not below .* = 5"):
        built("method.loss.importance_correction=icepop", "method.loss.importance_floor=6")
    with pytest.raises(ConfigError, match=r"with rollout\.top_p or rollout\.top_k"):
        built(
            "rollout.backend=vllm", "rollout.top_p=0.9", "rollout.vllm.draws=engine",
            "method.loss.importance_correction=icepop",
        )  # fmt: skip
