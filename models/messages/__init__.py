"""What travels on topics: definitions, JSON Schemas, and the reading of input records into events.

All modules of this package are public, and nothing is re-exported: a program that imports one message loads only that
one. A watch event of a pod, for example, is `watch_event.WatchEvent` with a `PodOfFeed` as a feed writes it;
`decoding.PodWatch` with a `kubernetes.shapes.PodObject` as the service decodes it, unchecked; and `events.PodEvent`
with a `kubernetes.objects.Pod` as the rules get it.
"""
