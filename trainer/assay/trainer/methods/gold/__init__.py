"""A gold verifier beside the one that trains: the hacking gap."""
