"""What the critic's tests share; as a script, one process of a run of several.

    python critic_support.py FOLDER

trains critics of both kinds for some mini-batches on the rows of its rank.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.trainer.algos import packing
from assay.trainer.algos.packing import Packing

STEPS = 3
ROWS = 8


def accelerator() -> Any:
    """Of one process, on the CPU."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()  # an earlier run of this process may have been mixed
    return Accelerator(cpu=True, mixed_precision="no")


def policy(folder: Path, *, seed: int = 0, hidden: int = 32) -> Any:
    """A tiny policy with random weights, saved in `folder`."""
    from genrm_support import make_model

    make_model(folder, "causal", seed=seed, hidden=hidden)
    return read_policy(folder)


def read_policy(folder: Path) -> Any:
    """The policy in a folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from assay.trainer.engines.models import LoadedPolicy

    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    return LoadedPolicy(model, AutoTokenizer.from_pretrained(folder))


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


def passes(batch: Any, rows: int) -> list[Tensor]:
    """Forward passes of at most so many rows."""
    return Packing(rows).passes(batch)


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
        old_BT = critic.values(batch, passes(batch, micro_batch))
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


def train_trunk(model: Any, critic: Any, *, rank: int = 0, ranks: int = 1) -> list[Any]:
    """As `train`, for a head on the policy, whose own loss is a likelihood in the same pass."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    reports = []
    mine = slice(rank * ROWS // ranks, (rank + 1) * ROWS // ranks)
    for step in range(STEPS):
        batch = batch_of(seed=step)
        returns_BT, mask_BT = targets_of(batch, seed=step), batch["completion_mask"].clone()
        mask_BT[6:], returns_BT[6:] = 0, float("nan")
        tokens = mask_BT.sum()
        batch, returns_BT, mask_BT = take(batch, mine), returns_BT[mine], mask_BT[mine]
        old_BT = critic.values(batch, passes(batch, 2))
        for part in torch.arange(len(mask_BT)).split(2):
            with critic.watch():
                logps_BT = logps_of(model, take(batch, part))
            policy_loss = -ranks * (logps_BT * mask_BT[part]).sum() / tokens
            value_loss, _ = critic.loss_from_last_forward(
                take(batch, part), returns_BT[part], old_BT[part], mask_BT[part], tokens=tokens
            )
            (policy_loss + value_loss).backward()
        reports.append([critic.step()["grad_norm"], float(old_BT.abs().sum())])
        optimizer.step()
        optimizer.zero_grad()
    return reports


def logps_of(model: Any, batch: Any) -> Tensor:
    """As TRL asks its fused head for them."""
    rows = packing.laid(batch)
    labels = rows.ids_SL.masked_fill(rows.mask_SL == 0, -100)
    out = model(
        input_ids=rows.ids_SL, attention_mask=rows.mask_SL, labels=labels, fused_lm_head=True
    )
    length = batch["completion_ids"].shape[1]
    return packing.of_tokens(out.log_probs, rows.starts_S - 1, length)


def read_fused(folder: Path) -> Any:
    """The policy in a folder, with TRL's fused head."""
    from trl.trainer.utils import add_fused_lm_head

    model = read_policy(folder).model
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model.train()


def separate(folder: Path, mode: str, engine: Any) -> list[Any]:
    """One rank's part of a critic of its own: trained, saved, trained on, loaded, trained."""
    from assay.trainer.critic.critic import Critic
    from assay.trainer.critic.model import load_critic
    from assay.trainer.critic.pretraining import measure
    from assay.trainer.settings.objective import CriticConfig

    config = CriticConfig(learning_rate=1e-3, init=str(folder / "reward"))
    critic = Critic(load_critic(config, read_policy(folder / "policy"), print), config, engine)
    rank = engine.process_index
    reports = train(critic, rank=rank, ranks=2)
    critic.save(folder / mode)
    train(critic, rank=rank, ranks=2)
    critic.load(folder / mode)
    again = train(critic, rank=rank, ranks=2)
    batch = batch_of(seed=rank, length=4 + rank)
    values_BT = critic.values(batch, passes(batch, 3))
    measured = measure(values_BT, targets_of(batch, seed=rank), batch["completion_mask"], engine)
    return [reports, again, measured.explained_variance]


def trunk(folder: Path, engine: Any) -> list[Any]:
    """One rank's part of a head on the policy."""
    from assay.trainer.critic.trunk import TrunkCritic
    from assay.trainer.settings.objective import CriticConfig

    policy = read_fused(folder / "policy")
    model, _ = engine.prepare(policy, torch.optim.SGD(policy.parameters()))
    critic = TrunkCritic(model, CriticConfig(sharing="trunk", learning_rate=1e-2), engine)
    return train_trunk(model, critic, rank=engine.process_index, ranks=2)


def main(folder: Path) -> None:
    """One rank's part, with DDP and then with FSDP2."""
    from accelerate import Accelerator
    from accelerate.utils import (
        DistributedDataParallelKwargs,
        DistributedType,
        FullyShardedDataParallelPlugin,
    )

    # as transformers' Trainer has it
    settings = DistributedDataParallelKwargs(find_unused_parameters=True)
    engine = Accelerator(cpu=True, kwargs_handlers=[settings])
    assert engine.num_processes == 2
    found = {"ranks": [*separate(folder, "ranks", engine), trunk(folder, engine)]}
    # accelerate offers FSDP2 for GPUs only; torch shards on CPUs as well
    engine.state.fsdp_plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap"
    )
    engine.state.distributed_type = DistributedType.FSDP
    assert engine.is_fsdp2
    found["fsdp2"] = [*separate(folder, "fsdp2", engine), trunk(folder, engine)]
    rank = engine.process_index
    engine.end_training()
    torch.save(found, folder / f"{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    # Now and then (once in some hundred runs) a thread of torch's aborts an interpreter that ends.
    os._exit(0)
