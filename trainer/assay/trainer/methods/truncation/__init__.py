"""T-PPO: responses that go on in the next step."""
