"""Quantities with units, chemistry."""
