"""SPO: advantages of segments."""
