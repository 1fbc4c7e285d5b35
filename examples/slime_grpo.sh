#!/bin/sh
# GRPO by slime (commit 624b824a) on rewards from a reward server; the last three arguments are Assay's.
#
#     assay up                        # in a checkout; serves on 127.0.0.1:50051
#     pip install ./protos ./kit ./clients    # there, into slime's environment
#     sh examples/slime_grpo.sh       # beside slime's own arguments for your model and cluster
#
# With `drop` a group with a sample that nobody could judge is dropped and another drawn.
#
# Run in the tests: the functions are loaded by these paths as slime loads them, and called with its
# arguments, against a real server. Not run: the training, which needs GPUs.
set -eu
export ASSAY_TARGET="${ASSAY_TARGET:-127.0.0.1:50051}" ASSAY_TASK=math ASSAY_ON_FAULT=drop
python train.py "$@" \
    --prompt-data "${DATA:-gsm8k/train.parquet}" \
    --input-key messages \
    --label-key label \
    --apply-chat-template \
    --advantage-estimator grpo \
    --n-samples-per-prompt 8 \
    --group-rm \
    --custom-rm-path assay.clients.trainers.slime.custom_rm \
    --dynamic-sampling-filter-path assay.clients.trainers.slime.drop_faulted_groups
