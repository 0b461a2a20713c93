"""Decisions of an executor before it acts: which commands count, in which order, and whether one still applies.

Pure: the executor (`evictstream.streams.executor`) passes commands, answers of the API server, and the time.
"""
