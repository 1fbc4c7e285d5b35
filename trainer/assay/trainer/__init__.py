"""Reinforcement learning of language models with rewards from Assay services.

commands    the command line
config      settings: TOML and key=value -> frozen dataclasses
data        prompts and references: reasoning-gym, JSONL, the hub
models      the policy, loaded
rewards     the reward services, as the trainer sees them
algos       advantages and fault masking: pure functions
grpo        TRL's GRPOTrainer, less its trust in every reward
run         one run, from start to report; beside it folder, callbacks, metrics, progress,
            evaluation, report, plots

Judges are trained by recipes/reward_model, on the same records.
"""
