"""The executor where it makes requests: who evicts is another controller."""
