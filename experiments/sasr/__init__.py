"""SASR's supervised steps, which give way to reinforcement by the gradient's norm."""
