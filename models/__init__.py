"""What things are and what is decided: pure functions and values, no I/O, no clock, no randomness.

- `evictstream.models.kubernetes`: taints, tolerations and matching as Kubernetes has them.
- `evictstream.models.eviction`: one node with its pods as an aggregate; windows, deadlines, the life of an eviction.
- `evictstream.models.messages`: what travels on topics.
- `evictstream.models.instants`: instants as text and as integer microseconds.

Nothing in here imports anything of `streams`.
"""
