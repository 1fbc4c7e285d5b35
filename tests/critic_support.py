"""What the critic's tests share; as a script, one process of a run of several.

    python critic_support.py FOLDER MODE

trains a critic for three mini-batches on the rows of its rank and saves it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

STEPS = 3
ROWS = 8


def accelerator() -> Any:
    """Of one process, on the CPU."""
    from accelerate import Accelerator

    return Accelerator(cpu=True)


def policy(folder: Path, *, seed: int = 0, hidden: int = 32) -> Any:
    """A tiny policy with random weights, saved in `folder`."""
    from genrm_support import make_model

    make_model(folder, "causal", seed=seed, hidden=hidden)
    return read_policy(folder)


def read_policy(folder: Path) -> Any:
    """The policy in a folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from assay.trainer.models import Policy

    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    return Policy(model, AutoTokenizer.from_pretrained(folder))


def batch_of(rows: int = ROWS, prompt: int = 4, length: int = 6, *, seed: int = 0) -> Any:
    """Random tokens; prompts padded on the left, responses on the right, of many lengths."""
    generator = torch.Generator().manual_seed(seed)

    def ids(columns: int) -> Tensor:
        return torch.randint(5, 300, (rows, columns), generator=generator)

    def lengths(columns: int) -> Tensor:
        return torch.randint(1, columns + 1, (rows, 1), generator=generator)

    prompt_mask = torch.arange(prompt).flip(0) < lengths(prompt)
    completion_mask = torch.arange(length) < lengths(length)
    prompt_mask[0], completion_mask[0] = True, True  # a row without padding
    return {
        "prompt_ids": ids(prompt) * prompt_mask,
        "prompt_mask": prompt_mask.long(),
        "completion_ids": ids(length) * completion_mask,
        "completion_mask": completion_mask.long(),
    }


def targets_of(batch: Any, *, seed: int = 0) -> Tensor:
    """A return for each token, in [-1, 1]."""
    generator = torch.Generator().manual_seed(seed + 1000)
    return torch.rand(batch["completion_ids"].shape, generator=generator) * 2 - 1


def take(batch: Any, rows: slice | Tensor) -> Any:
    """Some rows."""
    return {key: value[rows] for key, value in batch.items()}


def weights(model: Any) -> dict[str, Tensor]:
    """Copies of a model's weights."""
    return {name: w.detach().clone() for name, w in model.named_parameters()}


def train(critic: Any, *, rank: int = 0, ranks: int = 1, micro_batch: int = 2) -> list[Any]:
    """Three mini-batches of eight rows over all ranks; the last two rows are faulted."""
    reports = []
    mine = slice(rank * ROWS // ranks, (rank + 1) * ROWS // ranks)
    for step in range(STEPS):
        batch = batch_of(seed=step)
        returns_BT = targets_of(batch, seed=step)
        mask_BT = batch["completion_mask"].clone()
        mask_BT[6:], returns_BT[6:] = 0, float("nan")
        tokens = mask_BT.sum()
        batch, returns_BT, mask_BT = take(batch, mine), returns_BT[mine], mask_BT[mine]
        old_BT = critic.values(batch, micro_batch)
        parts = torch.arange(len(mask_BT)).split(micro_batch)
        for part in parts:
            critic.backward(
                take(batch, part),
                returns_BT[part],
                old_BT[part],
                mask_BT[part],
                tokens=tokens,
                sync=part is parts[-1],
            )
        reports.append(critic.step())
    return reports


def main(folder: Path, mode: str) -> None:
    """One rank's part; `ranks` or `fsdp2`."""
    from accelerate import Accelerator
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

    from assay.trainer.config import CriticConfig
    from assay.trainer.critic.critic import Critic
    from assay.trainer.critic.model import load_critic
    from assay.trainer.critic.pretraining import measure

    engine = Accelerator(cpu=True)
    if mode == "fsdp2":  # accelerate turns it on for GPUs only; torch shards on CPUs as well
        engine.state.fsdp_plugin = FullyShardedDataParallelPlugin(
            fsdp_version=2, auto_wrap_policy="transformer_based_wrap"
        )
        engine.state.distributed_type = DistributedType.FSDP
        assert engine.is_fsdp2
    assert engine.num_processes == 2
    config = CriticConfig(learning_rate=1e-3, init=str(folder / "reward"))
    model = load_critic(config, read_policy(folder / "policy"), print)
    critic = Critic(model, config, engine)
    rank = engine.process_index
    reports = train(critic, rank=rank, ranks=2)
    critic.save(folder / mode)
    train(critic, rank=rank, ranks=2)
    critic.load(folder / mode)  # and back
    again = train(critic, rank=rank, ranks=2)
    critic.save_pretrained(folder / f"{mode}-again")
    batch = batch_of(seed=rank, length=4 + rank)
    values_BT = critic.values(batch, 3)
    measured = measure(values_BT, targets_of(batch, seed=rank), batch["completion_mask"], engine)
    torch.save([reports, again, measured.explained_variance], folder / f"{mode}-{rank}.pt")
    engine.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
