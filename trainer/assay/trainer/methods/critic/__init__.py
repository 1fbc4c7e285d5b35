"""The value function as a part of a method; its code is in assay.trainer.critic."""
