"""The value function: a model of its own or a head on the policy, its pre-training, its storage."""
