"""What things are and what is decided: pure functions and values, no I/O, no clock, no randomness.

- `models.kubernetes`: taints, tolerations and matching as Kubernetes has them.
- `models.eviction`: one node with its pods as an aggregate; windows, deadlines, the life of an eviction.
- `models.messages`: what travels on topics.
- `models.instants`: instants as text and as integer microseconds.

Nothing in here imports anything of `streams`.
"""
