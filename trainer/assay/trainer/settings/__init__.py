"""What may be set: sections, checks, methods and parts as they are declared, the registry."""
