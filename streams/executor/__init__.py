"""The executor: carries out eviction commands in live clusters, and writes their results.

`execution` runs a `cluster_life` for each cluster, which checks the cluster and creates its parts. `command_consumer`
reads the commands of the cluster's partition, and `command_answers` queues, answers and commits them.
`cluster_executor` has the queue and the worker threads; `eviction` does one eviction with the requests of
`pod_requests`, in the cluster that `cluster_identity` has verified. In the mode `request` `open_requests` makes and
follows the EvictionRequests, and `request_keeper` withdraws those that are of no use any more. Decisions without I/O
are in `evictstream.models.execution`.
"""
