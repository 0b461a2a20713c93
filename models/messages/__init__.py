"""What travels on topics.

Two sides of one contract. Published: pydantic models (`watch_event`, `command`, `result`, `decision`, `dead_letter`)
and the JSON Schemas made from them (`schemas`). Fast: msgspec structs that write the same JSON (`wire`) and read the
inputs (`decoding`). Tests hold both together.

Nothing is re-exported here, on purpose: the hot path imports `wire` and `decoding` without loading pydantic, and
`evictstream.models.eviction` uses `wire` while `decoding` uses the events of `evictstream.models.eviction`.
"""
