"""Taint-based eviction for fleets of Kubernetes clusters, as an event-streaming service on Kafka.

Use it through its command line (`evictstream --help`) and the messages on its topics (docs/messages.md). Programs in
Python may also import four packages, which change only with a line in CHANGELOG.md:

- `evictstream.models.kubernetes`: the rules of Kubernetes that decide which pods must leave, as pure functions, and
  `evictstream.kit.rules`: its other rules for taints and tolerations (docs/kubernetes-rules.md).
- `evictstream.models.messages`: the messages on the topics, with their JSON Schemas (docs/messages.md).
- `evictstream.kit.recordings`: recordings of nodes and pods, read and written.

Everything else is private: it may change with any release.
"""
