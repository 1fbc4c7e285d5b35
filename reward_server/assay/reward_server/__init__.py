"""The reward server: routing and rule-based verifiers behind assay.api.reward.v1.RewardService."""
