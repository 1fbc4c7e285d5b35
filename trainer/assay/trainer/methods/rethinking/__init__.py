"""VL-Rethinker's forced rethinking."""
