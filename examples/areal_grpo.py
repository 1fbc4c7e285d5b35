"""GRPO by AReaL (1.0.4) on rewards from a reward server: AReaL's own example with our workflow.

    assay up                                # in a checkout; serves on 127.0.0.1:50051
    pip install ./protos ./kit ./clients    # there, into AReaL's environment
    export ASSAY_TARGET=127.0.0.1:50051 ASSAY_TASK=math
    python examples/areal_grpo.py --config YOUR.yaml

Rows have "messages" and "answer". AReaL gives up a prompt of which a sample cannot be judged.

Run in the tests: the function that the workflow awaits, with AReaL's arguments, against a real
server. Not run: the training, which needs GPUs, and what of this file calls AReaL.
"""

from __future__ import annotations

import sys

from areal.api.cli_args import GRPOConfig, load_expr_config
from areal.dataset import get_custom_dataset
from areal.utils.hf_utils import load_hf_tokenizer

from areal import PPOTrainer

WORKFLOW = "assay.clients.trainers.areal.RLVRWorkflow"


def main(arguments: list[str]) -> None:
    """Trains by the configuration that the arguments name."""
    config, _ = load_expr_config(arguments, GRPOConfig)
    tokenizer = load_hf_tokenizer(config.tokenizer_path)
    rows = get_custom_dataset(
        split="train", dataset_config=config.train_dataset, tokenizer=tokenizer
    )
    with PPOTrainer(config, train_dataset=rows) as trainer:
        trainer.train(
            workflow=WORKFLOW,
            workflow_kwargs={"gconfig": config.gconfig, "tokenizer": config.tokenizer_path},
        )


if __name__ == "__main__":
    main(sys.argv[1:])
