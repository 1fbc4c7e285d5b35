"""Settings in words, and the published methods that they are compared with."""
