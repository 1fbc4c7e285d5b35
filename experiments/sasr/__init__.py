"""SASR's supervised steps between others."""
