#!/bin/sh
# GRPO by verl (0.9.1) on rewards from a reward server; the last four keys are what Assay needs.
#
#     assay up                        # in a checkout; serves on 127.0.0.1:50051
#     pip install ./protos ./kit ./clients    # there, into verl's environment
#     sh examples/verl_grpo.sh
#
# A row's `data_source` is its task, its `reward_model.ground_truth` the reference; `task` here
# stands for every row.
#
# Run in the tests: the function is loaded by this path and name and called with verl's arguments; in
# `make test-adapters` verl's own configuration takes these keys, and its reward manager calls the
# function. Not run: the training, which needs GPUs.
set -eu
python -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files="${TRAIN_FILES:-$HOME/data/gsm8k/train.parquet}" \
    data.val_files="${VAL_FILES:-$HOME/data/gsm8k/test.parquet}" \
    actor_rollout_ref.model.path="${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}" \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=8 \
    reward.custom_reward_function.path=pkg://assay.clients.trainers.verl \
    reward.custom_reward_function.name=compute_score_async \
    +reward.custom_reward_function.reward_kwargs.target="${ASSAY_TARGET:-127.0.0.1:50051}" \
    +reward.custom_reward_function.reward_kwargs.task=math
