"""The reference of a KL: the policy before training, where there are no adapters to take off.

TRL's own is replaced: this one is sharded with its weights where one process of each machine has
read them (TRL 1.16.0 shards without sending them), and can be offloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trl.models.utils import prepare_deepspeed
from trl.trainer.utils import add_fused_lm_head, disable_dropout_in_model

from assay.kit.errors import ConfigError
from assay.trainer.engines.models import load_causal, shard
from assay.trainer.engines.offload import OffloadedModel


class Reference:
    """A frozen model that gives log-probabilities, loaded from the policy's `source`.

    The trainer's model must not have trained yet. `offload` keeps it in the host's memory while
    unused.

    Raises:
        ConfigError: an option of [trl] does not go with it.
    """

    def __init__(self, trainer: Any, source: str, *, offload: bool) -> None:
        args, accelerator = trainer.args, trainer.accelerator
        shape = trainer.model.config
        dtype = trainer.model.dtype
        if args.cast_lm_head_to_fp32 and dtype.itemsize < 4:
            raise ConfigError(
                "trl.cast_lm_head_to_fp32 does not reach the reference's bfloat16 head; set "
                'model.precision = "mixed", or leave it out'
            )
        model = load_causal(source, dtype, shape._attn_implementation)  # noqa: SLF001  # transformers has no other name for it
        model.requires_grad_(requires_grad=False).eval()
        if args.disable_dropout:
            disable_dropout_in_model(model)
        add_fused_lm_head(
            model, temperature=trainer.temperature, cast_lm_head_to_fp32=args.cast_lm_head_to_fp32
        )
        if trainer.is_deepspeed_enabled:
            model = prepare_deepspeed(model, accelerator)
        elif getattr(accelerator, "is_fsdp2", False):
            model = shard(accelerator, model).eval()
        else:
            model = accelerator.prepare_model(model, evaluation_mode=True)
        self._model = model
        self._waiting = OffloadedModel(model, accelerator.device, on=offload)
        self._waiting.leave()

    @contextmanager
    def used(self) -> Iterator[Any]:
        """The model on its device, for the length of a `with` block."""
        self._waiting.come()
        try:
            yield self._model
        finally:
            self._waiting.leave()
