"""How rewards become advantages: the estimators of a group, scales, weights, whitening."""
