"""Which language a response is in."""
