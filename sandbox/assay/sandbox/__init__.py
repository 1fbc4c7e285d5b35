"""The sandbox service: runs untrusted programs and holds them against tests."""
