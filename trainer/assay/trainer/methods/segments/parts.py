"""Parts and words of advantages of segments."""

from __future__ import annotations

from assay.trainer.settings.part import Part, to

_SPO = "SPO, arXiv 2505.23564, and the authors' code"


PARTS: tuple[Part, ...] = (
    Part(
        "probability-mask",
        "advantage",
        "Of a response in segments only tokens that the policy was not sure of are in the loss.",
        _SPO,
        lambda c: c.method.advantage.estimator == "segments" and c.method.segments.mask_sure,
        to("method.segments.mask_sure", False),
        code=("methods.segments.collector.segments",),
    ),
)
