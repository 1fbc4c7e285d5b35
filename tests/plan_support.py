"""Measures what a run takes, in a process of its own: `python tests/plan_support.py CONFIG.toml`.

Prints JSON: `loaded`, what the policy took, and `peak`, the most anonymous memory (RssAnon of
/proc/self/status, watched every few milliseconds) while the run trains; both less what the process
had when it began to load it, with all modules imported.
"""

from __future__ import annotations

import gc
import io
import json
import re
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

SHAPES: dict[str, dict[str, Any]] = {
    # SmolLM2-135M's
    "135m": {
        "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "tie_word_embeddings": True, "max_position_embeddings": 2048,
    },
    "60m": {
        "vocab_size": 16384, "hidden_size": 512, "intermediate_size": 1536,
        "num_hidden_layers": 14, "num_attention_heads": 8, "num_key_value_heads": 8,
        "tie_word_embeddings": False, "max_position_embeddings": 2048,
    },
}  # fmt: skip


def shape(name: str) -> Any:
    """One of SHAPES, with the tests' tokenizer's ends; random weights end a response by chance
    only."""
    from transformers import LlamaConfig

    return LlamaConfig(**SHAPES[name], pad_token_id=0, eos_token_id=1, bos_token_id=None)


def save(name: str, folder: Path) -> None:
    """A model of a shape, with random weights, as a folder."""
    import torch
    from transformers import AutoModelForCausalLM

    from trainer_support import tiny_tokenizer

    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(shape(name)).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


def resident() -> int:
    """Bytes of this process in memory: its own, and of mapped files, as read weights are."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return sum(1024 * int(found) for found in re.findall(r"Rss(?:Anon|File):\s+(\d+)", text))


class Watch(threading.Thread):
    """Looks at this process's memory until told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.is_set():
            self.peak = max(self.peak, resident())
            time.sleep(0.003)


def measure(path: str) -> dict[str, int]:
    """Trains, and measures."""
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    from assay.kit.runs.environment import calm

    calm()
    import torch
    from rich.console import Console

    from assay.trainer.recipes import train
    from assay.trainer.records import folder, plots
    from assay.trainer.settings import config
    from trainer_support import ExactTransport

    plots.draw = lambda *_args, **_kwargs: None  # type: ignore[assignment]
    torch.set_num_threads(1)
    gc.collect()
    load, watch = train.load_policy, Watch()
    began: list[int] = []

    def loading(*args: Any) -> Any:
        began.append(resident())
        found = load(*args)
        began.append(resident())
        watch.start()
        return found

    train.load_policy = loading
    made = config.load(Path(path))
    with tempfile.TemporaryDirectory() as where:
        run = folder.create(made, "measured", Path(where) / "run")
        # what is saved at the end is no step
        train.save_outcome = lambda *_args: watch.done.set()  # type: ignore[assignment]
        train.run(made, run, Console(file=io.StringIO()), transport=ExactTransport)
    return {"peak": watch.peak - began[0], "loaded": began[1] - began[0]}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
