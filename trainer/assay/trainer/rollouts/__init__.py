"""Rollouts: which prompts are drawn, how they are answered, judged, and chosen for training."""
