"""SPO-tree: advantages of the segments of a tree of responses."""
