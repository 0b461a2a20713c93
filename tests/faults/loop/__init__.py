"""The whole loop from a seed: a cluster, the feeds' records, the service's logic and the executor's, without Kafka.

What the ends and the service say to one another is the product's: `FeedRecords`, `EvictionPartition`, `CommandLog`,
`WorkQueue`, `AnsweredOffsets` and `last_look`. The API server, topics, time and all that goes wrong are models. The
engine and Kafka have their own torture in `tests/faults/simulated`; here a transaction holds or is lost as a whole.
`real.py` plays the same with processes on a real Kafka, which it kills.
"""
