"""Carries out eviction commands: from the commands topic to the API servers, and what was done to the results topic.

`execution.py` runs the whole; `command_reader.py` reads and commits, `cluster_queue.py` holds what waits for one
cluster, `eviction_worker.py` does one eviction with `pod_requests.py`. What is decided without asking anybody is in
`evictstream.models.execution`.
"""
