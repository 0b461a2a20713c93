"""Recordings: what went through the topics, and what others have recorded of nodes and pods; bounded in memory.

Reading and writing of entries is public, and needs no Kafka:

    with open_recordings(["nodes.jsonl.gz", "pods.jsonl.gz"]) as items, open("both.jsonl", "wb") as file:
        write_recording((item for item in items if isinstance(item, Entry)), file)

The modules are private. `recording_folder` holds records of topics as they were consumed (`record`), and
`topic_reader` makes them. `input_files` joins files of all other formats: `item_reader` recognises what
`evictstream.kit.inputs` has cut them into, and `watch_files`, `kubernetes_lists` and `audit_log` read it.
`time_order` sorts what has another order, `assumed_times` gives times to what has none, `trimming` keeps the fields in
use.
"""

from evictstream.kit.recordings.audit_log import AuditChange
from evictstream.kit.recordings.entries import Entry, Flaw, Skipped, WatchEnded, write_recording
from evictstream.kit.recordings.input_files import open_recordings
from evictstream.kit.recordings.item_reader import read_items

__all__ = [
    "AuditChange",
    "Entry",
    "Flaw",
    "Skipped",
    "WatchEnded",
    "open_recordings",
    "read_items",
    "write_recording",
]
