"""The environment as other trainers take one: a module for each trainer, imported by name."""
