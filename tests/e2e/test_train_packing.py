"""Packed passes in the real trainer: loss, gradient and curve of one pass for all rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.trainer.algos import packing
from assay.trainer.algos.packing import Packing
from trainer_processes_support import same
from trainer_support import ExactTransport, built_trainer

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]

GAE = {"estimator": "gae"}
TAIL = {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 96, "temperature": 5.0}
"""Responses of 17 tokens on average, the longest of a step about five times as long."""

LOSSES: dict[str, dict[str, Any]] = {
    "grpo": {"loss": {"kl_coef": 0.05, "aggregation": "seq-mean-token-mean"}},
    "dapo": {"loss": {"clip_high": 0.28, "entropy_coef": 0.01, "aggregation": "token-mean"}},
    "dr-grpo": {"loss": {"aggregation": "constant"}, "advantage": {"scale": "none"}},
    "gspo": {"loss": {"ratio": "sequence", "aggregation": "seq-mean-token-sum"}},
    "cispo": {"loss": {"objective": "cispo", "positive_lm_coef": 0.1}},
    "decoupled": {"loss": {"importance_correction": "decoupled"}},
    "ppo": {"advantage": GAE, "critic": {"loss": "clipped", "learning_rate": 1e-3}},
    "trunk": {"advantage": GAE, "critic": {"sharing": "trunk", "learning_rate": 1e-3}},
}


class Parity(ExactTransport):
    """1 for a response of an odd number of characters, and now and then a fault."""

    def __init__(self) -> None:
        super().__init__(lambda _call, item: int(item.id) % 11 == 3)

    def _judge(self, item: Any, result: Any) -> None:
        super()._judge(item, result)
        if result.HasField("judgement"):
            odd = len(item.response) % 2
            result.judgement.reward = float(odd)
            result.judgement.verdict = "correct" if odd else "incorrect"


def gradient(trainer: Any, micro_batches: list[dict[str, Any]]) -> tuple[float, torch.Tensor]:
    """Of a mini-batch, the critic's beside the policy's."""
    critic = trainer.critic
    learning = [
        trainer.model,
        *(getattr(critic, name) for name in ("model", "head") if critic and hasattr(critic, name)),
    ]
    for model in learning:
        model.zero_grad()
    total = 0.0
    for micro in micro_batches:
        loss = trainer._compute_loss(trainer.model, micro)
        loss.backward()
        total += float(loss.detach())
        if hasattr(critic, "backward"):
            values = (micro[name] for name in ("returns", "values", "value_mask"))
            sums = critic.backward(micro, *values, tokens=micro["window_value_tokens"])
            total += float(sums["loss"]) / float(micro["window_value_tokens"])
    weights = [weight for model in learning for weight in model.parameters()]
    return total, torch.cat([weight.grad.flatten().clone() for weight in weights])


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_a_packed_mini_batch_has_the_loss_and_gradient_of_one_pass(
    tiny_config: MakeConfig, tmp_path: Path, name: str
) -> None:
    """With a pass of TRL's own, all rows as wide as the longest prompt and the longest response."""
    config = tiny_config(
        method=LOSSES[name], rollout=TAIL, optim={"epochs": 2, "micro_batch_tokens": 200}
    )
    with built_trainer(config, tmp_path, Parity()) as trainer:
        batch = trainer._counted(trainer._generate_and_score_completions([]))
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():  # ratios and a KL that show
            for weight in trainer.model.parameters():
                weight.add_(0.01 * torch.randn(weight.shape, generator=generator))
        micro_batches = [packing.cut(batch, rows_N) for rows_N in trainer.packing.passes(batch)]
        assert len(micro_batches) > 6
        packed = gradient(trainer, micro_batches)
        whole = gradient(trainer, [batch])
        reversed_rows = torch.arange(len(batch["rewards"])).flip(0)
        by_rows = Packing(rows=5).passes(batch)
        others = [whole, gradient(trainer, [packing.cut(batch, reversed_rows)])]
        others.append(gradient(trainer, [packing.cut(batch, rows_N) for rows_N in by_rows]))
        if name != "trunk":  # whose values are read from the pass itself
            trainer._of_tokens = lambda model, rows, **wanted: full_width(
                trainer, model, rows, wanted
            )
            others.append(gradient(trainer, [batch]))
        assert abs(packed[0]) > 1e-4
        assert packed[1].norm() > 1e-3
        for loss, grad in others:
            assert packed[0] == pytest.approx(loss, rel=1e-4, abs=1e-6)
            torch.testing.assert_close(packed[1], grad, rtol=1e-3, atol=2e-6)


def test_a_rows_log_probabilities_do_not_depend_on_the_rows_beside_it(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    """Of a model with learnt positions, which padding on the left would move."""
    from transformers import AutoModelForCausalLM, GPT2Config
    from trl.trainer.utils import add_fused_lm_head

    torch.manual_seed(0)
    load: Any = AutoModelForCausalLM.from_config
    model = load(GPT2Config(vocab_size=99, n_positions=128, n_embd=32, n_layer=1, n_head=2)).eval()
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    generator = torch.Generator().manual_seed(0)
    prompts, responses = torch.tensor([[2], [9], [5], [4]]), torch.tensor([[7], [3], [12], [1]])
    batch = {
        "prompt_ids": torch.randint(4, 99, (4, 9), generator=generator),
        "prompt_mask": (torch.arange(9).flip(0) < prompts).long(),
        "completion_ids": torch.randint(4, 99, (4, 12), generator=generator),
        "completion_mask": (torch.arange(12) < responses).long(),
    }
    with built_trainer(tiny_config(), tmp_path, Parity()) as trainer, torch.no_grad():
        together = trainer._of_tokens(model, batch)[0]
        for row in range(4):
            alone = trainer._of_tokens(model, packing.cut(batch, torch.tensor([row])))[0]
            kept = together[row : row + 1, : int(responses[row])]
            torch.testing.assert_close(alone, kept, rtol=1e-4, atol=1e-5)
            prompt = batch["prompt_ids"][row, -int(prompts[row]) :]
            ids = torch.cat([prompt, batch["completion_ids"][row, : int(responses[row])]])
            logps = model(input_ids=ids[None]).logits[0].log_softmax(-1)  # as it was sampled
            told = logps[len(prompt) - 1 : -1].gather(1, ids[len(prompt) :, None]).T
            torch.testing.assert_close(alone, told, rtol=1e-4, atol=1e-5)


def full_width(trainer: Any, model: Any, rows: dict[str, Any], wanted: dict[str, Any]) -> Any:
    """What TRL does."""
    ids, mask = (
        torch.cat([rows[f"prompt_{kind}"], rows[f"completion_{kind}"]], dim=1)
        for kind in ("ids", "mask")
    )
    length = rows["completion_ids"].shape[1]
    return trainer._get_per_token_logps_and_entropies(model, ids, mask, length, **wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "optim"),
    [
        ({"loss": {"kl_coef": 0.05}}, {"mini_batches": 2}),
        (LOSSES["ppo"], {"mini_batches": 2, "epochs": 2}),
        (LOSSES["trunk"], {"epochs": 2}),
    ],
    ids=["grpo", "ppo", "trunk"],
)
def test_a_packed_run_has_the_curve_of_one_pass_a_mini_batch(
    tiny_config: MakeConfig,
    train: Train,
    curve: Curve,
    method: dict[str, Any],
    optim: dict[str, Any],
) -> None:
    """And hardly any padding, where that has more than half as many positions again as tokens."""
    made = {
        positions: curve(
            train(
                tiny_config(
                    method=method,
                    rollout=TAIL,
                    optim={**optim, "micro_batch_tokens": positions},
                    eval={"prompts": 0},
                    run={"steps": 2},
                ),
                str(positions),
                transport=Parity,
            )
        )
        for positions in (0, 160)
    }
    same(made[160], made[0], but=("padding_ratio",))
    padding = {
        positions: [row["padding_ratio"] for row in rows] for positions, rows in made.items()
    }
    assert all(1 <= ratio <= 1.05 for ratio in padding[160])
    assert all(ratio > 1.5 for ratio in padding[0])
