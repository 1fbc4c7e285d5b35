"""A full disk, said in one line whichever library met it: each has its own exception for that."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from assay.trainer.errors import TrainingStoppedError

_FULL = (errno.ENOSPC, errno.EDQUOT)
# torch.save does not say why it could not write, but it says that it could not.
_TORCH = ("PytorchStreamWriter failed writing", "inline_container")


@contextmanager
def said_when_full(folder: Path, command: str = "train") -> Iterator[None]:
    """Around a run of `assay COMMAND` that writes into a folder.

    Raises:
        TrainingStoppedError: its disk is full.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not is_full(error):
            raise
        raise TrainingStoppedError(
            f"the disk of {folder} is full: a checkpoint or a record could not be written; free "
            f"some room, then continue with `assay {command} --resume {folder}`"
        ) from error


def is_full(error: BaseException) -> bool:
    """Whether an exception of a writing library means that its disk is full."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    text = str(error)
    if isinstance(error, SafetensorError):
        return any(f"os error {number}" in text for number in _FULL)
    return isinstance(error, RuntimeError) and any(sign in text for sign in _TORCH)
