"""E2B's sandboxes and code interpreter, over sessions."""
