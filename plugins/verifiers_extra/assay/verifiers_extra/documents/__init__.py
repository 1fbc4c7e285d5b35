"""Verifiers of documents: tables, data of charts and outlines, by their structure."""
