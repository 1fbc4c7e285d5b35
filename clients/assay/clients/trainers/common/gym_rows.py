"""A row of NeMo Gym without the outcome of an earlier verification. Pure.

Gym verifies stored rollouts and failed rows again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FAULTED = "assay_fault"
"""The failure class of the adapter's failed rows."""

FAILED_OVER_HTTP = "judge_failed"
"""The failure class of the reward server's, over HTTP."""

_SAID = frozenset({"reward", "reward_components", "verdict", "extracted_answer"})
_MASK = "mask_sample"
_MARKS = frozenset({
    "_ng_failure_class", "_ng_failure_judge_error", "_ng_failure_message", "_ng_failure_reason",
    "_ng_failure_terminal", "failure_kind", "failure_reason", _MASK,
})  # fmt: skip


def unsaid(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without an earlier judgement, and without the marks of a fault of ours.

    A failure of another class stays.
    """
    bare = {name: value for name, value in row.items() if name not in _SAID}
    if row.get("_ng_failure_class") not in (FAULTED, FAILED_OVER_HTTP):
        return bare
    bare = {name: value for name, value in bare.items() if name not in _MARKS}
    instance = bare.get("instance_config")
    if isinstance(instance, Mapping):
        bare["instance_config"] = {k: v for k, v in instance.items() if k != _MASK}
    return bare
