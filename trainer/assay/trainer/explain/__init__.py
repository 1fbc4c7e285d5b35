"""What settings compose, in words, and the published methods that they are held against."""
