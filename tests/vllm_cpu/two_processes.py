"""A policy on two processes, whole or sharded, each with vLLM beside it.

torchrun --nproc-per-node 2 tests/vllm_cpu/two_processes.py ddp|fsdp2
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))


def main(kind: str) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from assay.trainer.engines.engine import Sampler
    from assay.trainer.engines.types import Sampling
    from assay.trainer.engines.vllm import VllmEngine
    from assay.trainer.settings.sections import VllmConfig
    from rollouts_support import ignore, make_requests
    from vllm_rollouts_support import World, same
    from vllm_support import tiny_policy

    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    whole, world = World(tiny_policy(tied=True)), World(tiny_policy(tied=True))
    if kind == "fsdp2":
        mesh = init_device_mesh("cpu", (2,))
        for layer in world.model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(world.model, mesh=mesh)
    engine = VllmEngine(world.host(in_step=lambda: kind == "fsdp2"), VllmConfig())
    for _ in range(3):
        if kind == "fsdp2":
            world.model.reshard()  # as a backward pass leaves it, for the optimizer
        for one in (whole, world):
            with torch.no_grad():
                for parameter in one.model.parameters():
                    parameter.mul_(1.05)
            one.version += 1
        requests = make_requests()[: 4 + 7 * rank]  # not as many on each
        found = Sampler(engine, Sampling(20)).generate(requests, ignore)
        same(found, whole.hf(requests, Sampling(20)))
    engine.close()
    torch.distributed.barrier()  # vLLM leaves the trainer's group alone
    torch.distributed.destroy_process_group()
    print("fine", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
