"""RL Tango (arXiv 2505.15034): a generator and a generative verifier that learn in turns.

settings    the section `cotraining`
schedule    whose step it is
protocol    what the verifier is shown, and what it says
measures    how well it verifies, and what its classes weigh
sources     where the rollouts of both roles come from
turns       two training loops of which one goes on at a time
roles       the verifier's run beside the generator's

Why it is built so: docs/adr/0013.
"""
