"""The methods, a room for each: its settings and declaration, and the code of its hooks.

A declaration imports no torch: a composition is told, and a mistake in it refused, at once.
"""
