"""The process that trains: quiet libraries, and an allocator that suits large tensors.

Call before torch, transformers and TRL are imported, which read the environment then.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import warnings

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
_THRESHOLD_BYTES = 2**30
_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def keep_freed_memory() -> None:
    """Makes glibc keep large freed blocks instead of returning them to the kernel.

    A training step frees and takes the same large tensors again and again; on a CPU the page faults
    cost a third of its time (2 cores, SmolLM2-135M: 8.0 s a pass, 5.3 s so). Does nothing with
    another C library.
    """
    mallopt = getattr(_LIBC, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def return_freed_memory() -> None:
    """Gives the kernel what `keep_freed_memory` kept; what comes next needs it in other sizes."""
    trim = getattr(_LIBC, "malloc_trim", None)
    if trim is not None:
        trim(0)


def calm() -> None:
    """Turns off libraries' telemetry, progress bars and advice.

    A setting that the user made in the environment stays.
    """
    quiet = {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        "DATASETS_VERBOSITY": "error",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "TQDM_DISABLE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "GRPC_VERBOSITY": "ERROR",
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that wait leave the cores to the reward service
    }
    for name, value in quiet.items():
        os.environ.setdefault(name, value)
    for library in (
        "transformers",
        "trl",
        "datasets",
        "accelerate",
        "matplotlib",
        "torch",
        "huggingface_hub",
    ):
        logging.getLogger(library).setLevel(logging.ERROR)
    for module in (
        "torch",
        "transformers",
        "trl",
        "datasets",
        "accelerate",
        "multiprocess",
        "tensorboard",
    ):
        warnings.filterwarnings("ignore", module=rf"{module}(\..*)?$")
    for name, call in _BARS.items():
        if name in sys.modules:  # it has read the environment before
            getattr(sys.modules[name], call)()


_BARS = {
    "huggingface_hub.utils": "disable_progress_bars",
    "datasets": "disable_progress_bars",
    "transformers.utils.logging": "disable_progress_bar",
}
