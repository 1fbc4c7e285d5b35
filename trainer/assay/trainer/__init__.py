"""Reinforcement learning of language models with rewards from Assay services.

commands    the command line
settings    TOML and key=value -> frozen dataclasses; plug-ins as they are declared
data        prompts and references: reasoning-gym, JSONL, the hub
selection   which problem comes next
engines     generation
rollouts    responses and their judgements
algos       advantages, losses, fault masking: pure functions
critic      the value function
core        the training step, on TRL's GRPOTrainer
methods     one folder a mechanism
records     metrics, samples, report
recipes     whole runs: train, ladder, reward models, value pre-training
explain     settings in words
plan        memory of a run, counted beforehand
"""
