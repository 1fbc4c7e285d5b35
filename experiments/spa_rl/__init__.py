"""SPA-RL's stepwise progress in place of a reward at the end."""
