"""What is minimised: the surrogates, and what stands beside them."""
