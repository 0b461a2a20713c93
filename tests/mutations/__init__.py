"""Break the code on purpose and see that a test notices: `python -m tests.mutations`.

Not part of `make test`: each mutation runs the tests that should fail with it, on a real Kafka, in a copy of the tree.
"""
