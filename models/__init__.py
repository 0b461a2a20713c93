"""What things are and what is decided: pure functions and values, no I/O, no clock, no randomness.

- `evictstream.models.kubernetes`: taints, tolerations and matching as Kubernetes has them.
- `evictstream.models.eviction`: one node with its pods as an aggregate; windows, deadlines, the life of an eviction.
- `evictstream.models.execution`: the executor's decisions: which commands are obsolete, what is next, the last look.
- `evictstream.models.steering`: what holds an eviction back although it is due.
- `evictstream.models.messages`: the messages on the topics.
- `evictstream.models.instants`: times as text and as integer microseconds.
- `evictstream.models.shallow_json`: JSON that is too deep for a decoder, without the parts that are too deep.

Nothing in here imports anything of `streams` or `kit`.
"""
