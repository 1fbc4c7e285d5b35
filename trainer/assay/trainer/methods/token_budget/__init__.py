"""C3PO: a step trains on so many tokens, in whole responses."""
