"""Spans of a profile that are another part's than its verdict."""

from __future__ import annotations

import pytest

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Span
from profiles_support import an_item, judged, make, right, wrong

STEPPED = """
[[profile]]
name = "stepped"
description = "The answer counts, the lines are told."
spans = "lines"
[[profile.component]]
verifier = "answer"
[[profile.component]]
name = "lines"
verifier = "length"
weight = 0.0
"""


def test_spans_may_be_those_of_another_part_than_the_verdict() -> None:
    profile = make(STEPPED)
    lines, step = Span(0, 1, -0.5, "line"), Span(0, 1, 1.0, "step")
    answers = {"answer": right(1.0, spans=(step,)), "lines": wrong(-0.25, spans=(lines,))}
    judgement = judged(profile, an_item(profile), answers)
    assert (judgement.reward, judgement.verdict) == (1.0, "correct")
    assert judgement.spans == (lines,)
    with pytest.raises(ConfigError, match="'spans': no component is named 'linse'"):
        make(STEPPED.replace('spans = "lines"', 'spans = "linse"'))
