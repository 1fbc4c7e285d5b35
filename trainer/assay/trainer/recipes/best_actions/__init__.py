"""Better actions than the logged ones: values of actions, and the best of several (Digi-Q)."""
