"""Problems, and the pool of them that a run draws from."""
