"""SPA-RL: what a response earned, divided among its steps by an estimate of their progress."""
