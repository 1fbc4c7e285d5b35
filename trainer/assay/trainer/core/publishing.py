"""Checkpoints of a trainer appear whole: written beside, then published by one rename."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list

from assay.kit.runs import checkpoints


class Published:
    """A mixin before a Trainer among the bases of a class; see `assay.kit.runs.checkpoints`."""

    args: Any
    state: Any
    accelerator: Any

    def save_beside(self, folder: Path) -> None:
        """Adds our files to the folder of a checkpoint before it is published."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        final = Path(str(self.args.output_dir))
        step = self.state.global_step
        with self.staged(final, step) as staging:
            self.args.output_dir = str(staging)
            try:
                super()._save_checkpoint(model, trial)  # type: ignore[misc]  # the trainer's
            finally:
                self.args.output_dir = str(final)
            self.save_beside(staging / checkpoints.name_of(step))

    @contextmanager
    def staged(self, final: Path, step: int) -> Iterator[Path]:
        """One folder for all processes, published by the first when all have written."""
        if self.accelerator.num_processes == 1:
            with checkpoints.staged(final, step) as staging:
                yield staging
        elif self.accelerator.is_main_process:
            with checkpoints.staged(final, step) as staging:
                broadcast_object_list([str(staging)])
                yield staging
                self.accelerator.wait_for_everyone()
            self.accelerator.wait_for_everyone()
        else:
            told = [""]
            broadcast_object_list(told)
            yield Path(told[0])
            self.accelerator.wait_for_everyone()
            self.accelerator.wait_for_everyone()

    def create_model_card(self, *_args: Any, **_kwargs: Any) -> None:
        """Writes nothing: a checkpoint is not a publication."""
