"""Carries out eviction commands: from the commands topic to the API servers, and what was done to the results topic.

`execution` runs a `cluster_life` for each cluster, which checks the cluster and has all that it needs. In it
`command_consumer` reads, answers and commits; `cluster_executor` holds what waits and has the threads; `eviction` does
one eviction with the requests of `pod_requests`, in the cluster that `cluster_identity` has found. What is decided
without asking anybody is in `evictstream.models.execution`.
"""
