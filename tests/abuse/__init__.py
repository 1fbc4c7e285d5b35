"""Hostile programs as data, and what is needed to set them on a service: see corpus.py,
canaries.py and manifest.json.
"""
