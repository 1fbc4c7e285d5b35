"""SPO's tree of segments."""
