"""Taint-based eviction for fleets of Kubernetes clusters, as an event-streaming service on Kafka.

Use it through its command line (`evictstream --help`) and the messages on its topics (docs/messages.md). Programs in
Python may also import three packages, which change only with a line in CHANGELOG.md:

- `evictstream.models.kubernetes`: Kubernetes' rules for taints and tolerations as pure functions
  (docs/kubernetes-rules.md).
- `evictstream.models.messages`: the messages on the topics, with their JSON Schemas (docs/messages.md).
- `evictstream.streams.recordings`: recordings of nodes and pods, read and written.

Everything else is private: it may change with any release.
"""
