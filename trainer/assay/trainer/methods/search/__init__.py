"""VM-MCTS of ReST-RL: an evaluation that a critic guides."""
