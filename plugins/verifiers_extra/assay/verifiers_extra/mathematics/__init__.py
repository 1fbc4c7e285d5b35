"""Mathematics as other libraries judge it."""
