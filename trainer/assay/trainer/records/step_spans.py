"""A step as a trace: what the rollout, the scoring and every call of the step hang below."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from assay.rpc import tracing


class StepSpans(TrainerCallback):
    """Opens a span when a step begins, and ends it with its last update.

    What is drawn ahead of time hangs below the step that ordered it.
    """

    def __init__(self, updates: int) -> None:
        self._updates = updates
        self._span = tracing.Span()

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Opens the span."""
        step, rest = divmod(state.global_step, self._updates)
        if not rest:
            self._span = tracing.span("step", {"assay.step": step + 1})
            self._span.__enter__()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Ends it."""
        if state.global_step % self._updates == 0:
            span, self._span = self._span, tracing.Span()
            span.__exit__(None, None, None)
