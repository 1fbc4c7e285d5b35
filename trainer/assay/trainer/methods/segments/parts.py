"""Parts and words of advantages of segments."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, to

_SPO = "SPO, arXiv 2505.23564, and the authors' code"

PARTS: tuple[Part, ...] = (
    Part(
        "probability-mask", "advantage",
        "Of a response in segments only tokens that the policy was not sure of are in the loss.",
        _SPO, lambda c: c.method.advantage.estimator == "segments" and c.method.segments.mask_sure,
        to("method.segments.mask_sure", False), code=("methods.segments.collector.segments",),
    ),
)  # fmt: skip

METRICS: tuple[Metric, ...] = metrics("sampling",
    ("continuations", "responses",
     ('Responses written from the cuts of others, with `estimator = "segments"` (arXiv '
      "2505.23564). They are in no other line here.")),
    ("continuation_tokens", "tokens", "Tokens drawn for them, on top of generated_tokens."),
    ("continuation_faults", "share",
     ("Of them, those without a judgement: they are in no value, and count towards "
      "`reward.max_fault_ratio`.")),
    ("segments_per_response", "segments", "Mean over judged responses."),
    ("valued_states", "states", "Different states that continuations valued."),
    ("valueless_states", "states",
     ("Those all of whose continuations faulted: the segments that begin or end there leave "
      "the loss.")),
)  # fmt: skip
