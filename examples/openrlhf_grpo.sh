#!/bin/sh
# GRPO by OpenRLHF (0.11.2) on rewards from a reward server; the reward function is a file.
#
#     assay up                        # in a checkout; serves on 127.0.0.1:50051
#     pip install ./protos ./kit ./clients    # there, into OpenRLHF's environment, on every node
#     sh examples/openrlhf_grpo.sh
#
# Settings are environment variables of the workers. With `drop`, and dynamic filtering, a group with
# a sample that nobody could judge is dropped and another drawn.
#
# Run in the tests: the file that is named here (its head says how). Not run: the training, which
# needs GPUs.
set -eu
export ASSAY_TARGET="${ASSAY_TARGET:-127.0.0.1:50051}" ASSAY_TASK=math ASSAY_ON_FAULT=drop
python -m openrlhf.cli.train_ppo_ray \
    --actor.model_name_or_path "${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}" \
    --data.prompt_dataset "${DATA:-openai/gsm8k}" \
    --data.input_key question \
    --data.label_key answer \
    --rollout.n_samples_per_prompt 8 \
    --algo.advantage.estimator group_norm \
    --algo.dynamic_filtering_enable \
    --reward.remote_url "$(dirname "$0")/openrlhf_reward.py"
