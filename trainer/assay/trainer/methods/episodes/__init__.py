"""Episodes: the policy acts in an environment, turn by turn (assay.environments)."""
