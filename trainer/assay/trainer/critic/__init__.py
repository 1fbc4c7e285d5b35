"""The value function: a model of its own or a head on the policy, pre-training, storage."""
