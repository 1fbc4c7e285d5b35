"""The arithmetic of the algorithms: pure functions of tensors, without TRL, network or clock.

A suffix is a shape: P prompts, G samples of each, B = P * G rows, T response tokens, V tokens of
the vocabulary, K classes or keys, D domains; `rewards_PG` is (P, G). Masks are bool or 0 and 1.
"""
