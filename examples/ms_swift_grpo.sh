#!/bin/sh
# GRPO by ms-swift (4.6.0) on rewards from a reward server; the last two arguments are Assay's.
#
#     assay up                        # in a checkout; serves on 127.0.0.1:50051
#     pip install ./protos ./kit ./clients    # there, into ms-swift's environment
#     sh examples/ms_swift_grpo.sh
#
# The references are in the column `solution`, or `answer`, or `reference`.
#
# Run in the tests: the plugin that is named here (its head says how). Not run: the training.
set -eu
export ASSAY_TARGET="${ASSAY_TARGET:-127.0.0.1:50051}" ASSAY_TASK=math
swift rlhf \
    --rlhf_type grpo \
    --model "${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}" \
    --dataset "${DATA:-AI-MO/NuminaMath-TIR}" \
    --num_generations 8 \
    --external_plugins "$(dirname "$0")/ms_swift_plugin.py" \
    --reward_funcs assay
