"""T-PPO: responses that continue in the next step."""
