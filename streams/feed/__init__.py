"""Nodes and pods on their way into the topics: from live clusters, and from recordings of watches.

Recordings are public, and need no Kafka: a recording is read as `Entry`, `Skipped` and `Flaw`, and entries are
written as a recording.

    with open_recordings(["nodes.jsonl.gz", "pods.jsonl.gz"]) as items, open("both.jsonl", "wb") as file:
        write_recording((item for item in items if isinstance(item, Entry)), file)

The modules are private. `json_documents` cuts a byte stream into JSON documents, `recording` reads them as watch
events, `trimming` keeps the fields in use, `pace` keeps recorded distances of time, `publisher` writes to Kafka,
`importer` joins them. `operator_signals` writes an operator's orders.

The live feed (docs/feed.md): `fleet` runs a `cluster_feed` for each cluster, which runs a `kind_feed` for its nodes
and one for its pods. `watched_objects` trims what the API server sends, `feed_records` makes the records,
`feed_lease` decides who writes. `feed_health` answers probes.
"""

from evictstream.streams.feed.recording import (
    Entry,
    Flaw,
    Skipped,
    WatchEnded,
    open_recordings,
    read_recording,
    write_recording,
)

__all__ = ["Entry", "Flaw", "Skipped", "WatchEnded", "open_recordings", "read_recording", "write_recording"]
