"""Settings of a run: sections, checks, plug-in declarations and their registry."""
