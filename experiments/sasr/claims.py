"""What SASR (arXiv 2505.13026) says of supervised steps that give way to reinforcement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Service, tiny, train, write_rows
from experiments.tasks import LIMIT, counted, counting, counts_right

STEPS, WARMUP, EACH = 60, 10, 4
SETUP = (
    "Count on from a digit by two to nine, in the last digit alone; a pretrained model miscounts."
    f" One training problem in {EACH} has a demonstration. {STEPS} steps, each of 8 x 8 responses"
    f" with GRPO or of demonstrations; held out: 16 problems, 16 responses each"
)
WHY = (
    "The demonstrations are few enough that supervision alone learns them by heart, and the base"
    " is right four times in ten, so that reinforcement has something to begin with: each has room"
    " to be better than the other."
)
ARMS: Mapping[str, tuple[str, ...]] = {
    "sasr": (f"method.offline.mix_warmup={WARMUP}",),
    "warm-up": (f"method.offline.mix_warmup={WARMUP}", "method.offline.mix_gamma=1e9"),
    "supervised": (f"method.offline.mix_warmup={STEPS}",),
    "grpo": (),
}
"""Supervised steps: by the gradient's norm after a warm-up, the warm-up's alone, all, none."""


def _better(name: str, says: str, theirs: str, effect: float, deviation: float) -> Claim:
    source = "SASR, arXiv 2505.13026, abstract"
    return Claim(
        name, says, source, SETUP + ".", WHY, "accuracy", "sasr", theirs, effect, deviation
    )


CLAIMS = (
    _better("sasr-over-static", "It outperforms a static hybrid.", "warm-up", 0.03, 0.03),
    _better("sasr-over-rl", "It outperforms reinforcement alone.", "grpo", 0.1, 0.06),
    _better("sasr-over-supervised", "It outperforms supervision alone.", "supervised", 0.1, 0.06),
)


def prepare(models: Path) -> None:
    """The model, the problems, and demonstrations of a part of them."""
    _, rows, _ = counting(models)
    asked = [json.loads(line)["question"] for line in rows.read_text(encoding="utf-8").splitlines()]
    write_rows(_demonstrations(models), map(_shown, asked[::EACH]))


def _shown(question: str) -> dict[str, object]:
    a, b = question.rstrip("=").split("+")
    response = counted(int(a), int(b))
    return {"prompt": question, "response": response, "reward": 1.0, "verdict": "correct"}


def _demonstrations(models: Path) -> Path:
    return models / "counting-demonstrations.jsonl"


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Held-out accuracy before and after, and the share of steps that were supervised."""
    own = [f"rollout.max_new_tokens={LIMIT}", "optim.learning_rate=3e-4", "optim.mini_batches=1"]
    own += ["eval.prompts=16", "eval.samples=16", "method.loss.kl_coef=0"]
    if arm != "grpo":
        own += [f"method.offline.rows={_demonstrations(models)}", "method.offline.mix=sasr"]
        own += ["method.offline.reference=none", *ARMS[arm]]
    report = train(
        tiny("grpo", {"seed": seed, "steps": STEPS}, counting(models), *own),
        folder,
        lambda: Service(counts_right, rewards=(0.0, 1.0)),
    )
    rows = list(read_rows(RunFolder(folder).metrics))
    return {
        "before": report["before"]["accuracy"],
        "accuracy": report["after"]["accuracy"],
        "supervised": sum(row.get("sft_step") or 0.0 for row in rows) / len(rows),
    }
