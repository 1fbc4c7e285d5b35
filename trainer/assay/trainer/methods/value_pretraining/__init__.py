"""VC-PPO: the critic learns before the policy moves."""
