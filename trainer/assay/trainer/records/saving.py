"""A run's results: model/, with LoRA adapter/ too, and critic/.

model/ is whole: the shards of FSDP2 are gathered, and with LoRA the adapter is merged into its base
weights, so that any engine loads it without PEFT. adapter/ is the adapter alone, for
`peft.PeftModel.from_pretrained` and for servers that hold many. Each folder appears by one rename.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from transformers import AutoModelForCausalLM
from transformers.integrations.deepspeed import unset_hf_deepspeed_config

from assay.kit.runs.environment import return_freed_memory
from assay.kit.runs.folders import publish
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.core.world import World
from assay.trainer.records.folder import RunFolder


def save_outcome(trainer: PolicyTrainer, folder: RunFolder, tokenizer: Any, world: World) -> None:
    """Saves policy, tokenizer, adapter and critic; every process calls it, the first one writes."""
    policy, critic = folder.path / ".model-saving", folder.path / ".critic-saving"
    if world.main:
        for left in (policy, critic):
            shutil.rmtree(left, ignore_errors=True)
    world.wait()
    _gather_whole(trainer)
    trainer.save_model(str(policy))
    if trainer.critic is not None:
        trainer.critic.save_pretrained(critic)
    world.wait()
    unset_hf_deepspeed_config()  # or ZeRO-3 shards what the first process loads to merge
    if not world.main:
        return
    for extra in ("training_args.bin", "README.md"):  # of the trainer, and PEFT's model card
        (policy / extra).unlink(missing_ok=True)
    tokenizer.save_pretrained(policy)
    if (policy / "adapter_config.json").is_file():
        return_freed_memory()  # the steps' activations: the base weights come a second time
        merged = folder.path / ".merged-saving"
        shutil.rmtree(merged, ignore_errors=True)
        frozen = trainer.config.model.lora.base == "bfloat16"
        own = torch.float32 if frozen and trainer.config.model.precision != "bfloat16" else None
        _merge(trainer.model, policy, merged, own)
        tokenizer.save_pretrained(merged)
        publish(policy, folder.adapter)
        policy = merged
    publish(policy, folder.model)
    if trainer.critic is not None:
        publish(critic, folder.critic)


def _gather_whole(trainer: PolicyTrainer) -> None:
    """Has FSDP give the whole model, which it gives only if its state is not to be sharded."""
    if trainer.accelerator.distributed_type == DistributedType.FSDP:
        trainer.accelerator.state.fsdp_plugin.set_state_dict_type("FULL_STATE_DICT")


def _merge(model: Any, adapter: Path, target: Path, own: torch.dtype | None) -> None:
    """The base weights with the adapter in them, read anew: those in training may be sharded.

    In `own`, the adapter's precision, where the base has fewer bits, which would round small
    changes off.
    """
    from peft import PeftModel  # noqa: PLC0415  # a second to import; most runs need none

    base = model.get_base_model()
    dtype = own or next(base.parameters()).dtype
    whole: Any = AutoModelForCausalLM.from_pretrained(base.config.name_or_path, dtype=dtype)
    with torch.no_grad():
        merged: Any = PeftModel.from_pretrained(whole, adapter).merge_and_unload()
    merged.save_pretrained(target)
