"""Recordings of watches, read and written; and, for the command line, played into the topics.

Public, and without Kafka: a recording is read as `Entry`, `Skipped` and `Flaw`, and entries are written as a recording.

    with open_recordings(["nodes.jsonl.gz", "pods.jsonl.gz"]) as items, open("both.jsonl", "wb") as file:
        write_recording((item for item in items if isinstance(item, Entry)), file)

The modules are private. `json_documents` cuts a byte stream into JSON documents, `recording` reads them as watch
events, `trimming` keeps the fields in use, `pace` keeps recorded distances of time, `publisher` writes to Kafka,
`importer` joins them. `operator_signals` writes an operator's orders.
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
