"""Parts and words of background rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

PARTS: tuple[Part, ...] = (
    Part(
        "asynchronous-rollouts", "sampling",
        "Batches are drawn while the policy learns, by weights that are at most some steps old.",
        "AReaL, arXiv 2505.24298", *switch("method.asynchrony.mode", "off", "bounded"),
        code=("methods.asynchrony.settings.admits",),
        needs={"beside": "batches are drawn while the policy learns"},
        takes={
            "collector": "a thread draws batches ahead",
            "outcomes": "judgements are still out when the next batch is ordered",
            "fresh": "the weights that drew may be some steps old",
        },
    ),
    Part(
        "periodic-asynchrony", "sampling",
        "Micro-batches that are whole are trained on while the rest of the step is drawn and "
        "judged; the weights move when all are in.",
        "Periodic Asynchrony, arXiv 2511.18871; of the paper its abstract",
        *switch("method.asynchrony.mode", "off", "periodic"),
        code=("methods.asynchrony.periodic.Iteration",),
        needs={"beside": "a step is drawn while its first micro-batches train"},
        takes={
            "collector": "a thread draws the step",
            "outcomes": "judgements are still out when the next portion is ordered",
            "whole-batch": "micro-batches train as they become whole",
        },
    ),
    Part(
        "interruption", "sampling",
        "Responses under way go on under the weights of a step as it begins.",
        "AReaL, arXiv 2505.24298 (interruptible rollout workers)",
        lambda c: c.method.asynchrony.mode == "bounded" and c.method.asynchrony.interrupt,
        to("method.asynchrony.interrupt", False),
        code=("methods.asynchrony.background.BackgroundCollector",),
    ),
)  # fmt: skip


def sampling_lines(config: Config) -> list[str]:
    """How batches are drawn."""
    mode, eta = config.method.asynchrony.mode, config.method.asynchrony.max_staleness
    told = {
        "periodic": "drawn and judged beside the training on the micro-batches that are whole; the "
        "weights move when all are in",
        "bounded": f"drawn beside the training, by weights at most {count(eta, 'step')} old: "
        f"rollout n begins when floor((n - 1) / {config.samples_per_step:,}) <= steps made + {eta}",
    }[mode]
    if config.method.asynchrony.interrupt:
        told += "; responses under way go on under the weights of each step as it begins"
    return [told]


def objective_lines(config: Config) -> list[str]:
    """What pi_old is where a batch may be stale."""
    asynchrony = config.method.asynchrony
    if asynchrony.mode != "bounded" or not asynchrony.max_staleness:
        return []
    decoupled = config.method.loss.importance_correction == "decoupled"
    weights = "just before the update" if decoupled else "that drew the response"
    return [f"pi_old: the weights {weights}"]


METRICS: tuple[Metric, ...] = (
    *metrics("sampling",
        ("staleness", "steps",
         ("How far the weights that drew the batch are behind those that learn from it "
          "(`method.asynchrony`): all of a batch is drawn by the same, so this is mean and "
          "maximum.")),
        ("interruptions", "count",
         ("How often the batch went on under newer weights while it was drawn "
          "(`method.asynchrony.interrupt`).")),
    ),
    *metrics("time",
        ("generate_wait_s", "s",
         ("Waiting for responses that are drawn beside the training (`method.asynchrony`); null "
          "where the step generates.")),
    ),
)  # fmt: skip
