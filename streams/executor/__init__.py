"""Carries out eviction commands: from the commands topic to the API servers, and what was done to the results topic.

`execution` runs the whole. `command_consumer` reads, answers and commits; `cluster_executor` holds what waits for one
cluster and has the threads; `eviction` does one eviction with the requests of `pod_requests`. What is decided without
asking anybody is in `evictstream.models.execution`.
"""
