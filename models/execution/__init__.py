"""What an executor decides before it acts: which commands count, in which order, and whether one is still true.

Pure: the executor (`evictstream.streams.executor`) hands in commands, what the API server has answered, and the time.
"""
