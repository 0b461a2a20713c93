"""What travels on topics: definitions, JSON Schemas, and the reading of input records into events.

Nothing is re-exported, so whoever imports one message loads only that one.
"""
