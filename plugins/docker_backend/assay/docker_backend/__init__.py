"""A Docker container for each program: the sandbox's back ends `docker` and `runsc`."""
