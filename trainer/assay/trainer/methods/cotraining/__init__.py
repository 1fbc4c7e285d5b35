"""RL Tango (arXiv 2505.15034): a generator and a generative verifier that learn in turns.

See docs/adr/0013.
"""
