"""Parts and words of stored rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, Switches, switch, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _drawn_alone(_config: Config) -> Switches:
    """No stored responses."""
    off = {"rows": "", "mix": "none", "keep": "all", "reference": "start"}
    return {f"method.offline.{key}": value for key, value in off.items()}


PARTS: tuple[Part, ...] = (
    Part(
        "stored-rollouts", "sampling",
        "Responses are read from what was drawn and judged before; nothing is drawn to train.",
        "ours; A-LoL, arXiv 2305.14718, learns so",
        lambda c: bool(c.method.offline.rows) and c.method.offline.mix == "none", None,
        code=("methods.offline.source.StoredSource",),
        takes={
            "collector": "responses are read",
            "drawing": "they were drawn before",
            "outcomes": "nothing is drawn that a choice could go by",
            "fresh": "another policy drew the responses",
            "pausing": "they are whole",
            "first-tokens": "they were drawn before",
            "beside": "nothing is drawn",
        },
    ),
    Part(
        "adaptive-supervision", "sampling",
        "Some steps maximise the likelihood of stored responses, by how much these still move the "
        "policy; the others learn from responses of its own.",
        "SASR, arXiv 2505.13026, after its abstract; the form is a derivation",
        lambda c: c.method.offline.mix == "sasr", _drawn_alone,
        code=("algos.selection.supervision_chance", "methods.offline.mixing.MixedSource"),
        takes={
            "fresh": "demonstrations train in some steps",
            "steady-spans": "demonstrations have no judged steps",
        },
        needs={
            "collector": "steps of both kinds take turns",
            "first-tokens": "those of demonstrations are nobody's draws",
            "one-turn": "a demonstration is a response of one turn",
        },
    ),
    Part(
        "advantage-filter", "sampling",
        "Of stored responses only those train that earned more than their prompt's mean.",
        "A-LoL, arXiv 2305.14718", lambda c: c.method.offline.keep == "positive",
        to("method.offline.keep", "all"), code=("methods.offline.stored.kept",),
        needs={"judged-rewards": "its mean is of rewards as they were judged"},
    ),
    Part(
        "correct-only", "sampling",
        "Of stored responses only the correct ones train.",
        "rejection sampling, as before PAG, arXiv 2506.10406, and Tango, arXiv 2505.15034",
        lambda c: c.method.offline.keep == "correct",
        to("method.offline.keep", "all"), code=("methods.offline.stored.kept",),
    ),
    Part(
        "component-pairs", "sampling",
        "Two responses of one verdict make a pair where one component, as the format, tells them "
        "apart.",
        "Metis-SPECS, arXiv 2510.25801, after its abstract",
        lambda c: c.method.offline.pairs not in ("", "reward"),
        to("method.offline.pairs", "reward"), code=("methods.offline.stored.pairs_of",),
    ),
    Part(
        "recorded-reference", "loss",
        "Ratios start from the model that drew the rows, by what it said of them.",
        "ours", *switch("method.offline.reference", "start", "recorded"),
        code=("methods.offline.stored.Stored",),
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """Where the responses are from."""
    offline = config.method.offline
    if offline.mix == "sasr":
        chance = "g / (g + gamma * that of the warm-up)"
        braked = f", g times 1 + {offline.mix_brake:g} * KL" if offline.mix_brake else ""
        return [
            (
                f"the first {offline.mix_warmup} steps, and later ones with the chance {chance}, "
                f"are supervised by stored responses ({offline.keep}) of {offline.rows}: A = 1 and "
                "r = 1"
            ),
            (
                f"g: the gradient's norm in the latest supervised step{braked}; gamma = "
                f"{offline.mix_gamma:g}"
            ),
        ]
    told = [f"the responses are stored ones of {offline.rows}; nothing is drawn to train"]
    kept = {
        "all": "",
        "correct": "only correct ones",
        "positive": "only those that earned more than the mean of their prompt",
    }[offline.keep]
    if kept:
        told.append(kept)
    if offline.pairs:
        by = "reward" if offline.pairs == "reward" else f"component {offline.pairs!r}, same verdict"
        told.append(
            f"in pairs of a prompt that differ by more than {offline.margin:g} in {by}"
            + (", or not at all" if offline.ties else "")
        )
    told += {
        "start": ["pi_old: the model as this run loads it, computed before the first step"],
        "recorded": ["pi_old: the model that drew them, as recorded"],
        "none": [],
    }[offline.reference]
    return [*told, "a response without a judgement is in no group"]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("stored_passes", "passes", "Passes over the stored groups so far (`method.offline`)."),
    ("pair_accuracy", "share",
     "Pairs whose better response gained more than the worse one, over the model as loaded."),
    ("pair_margin", "nats", "By how much more: the mean difference of their log-ratios."),
    ("sft_step", "share", "1 for a supervised step, 0 for another (`method.offline.mix`)."),
    ("sft_chance", "share", "The chance that the step is supervised."),
    ("sft_grad_norm", "norm",
     "Of the gradient in the latest supervised step before this one."),
)  # fmt: skip
