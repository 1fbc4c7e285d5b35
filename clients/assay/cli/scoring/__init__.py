"""Files of rows that are scored: read, written so that a stopped run goes on, and counted."""
