"""Everything that moves data: the engine, the partition, worker, feed and executor, and their commands.

What things *are* and what is *decided* lives in `models`, which knows nothing of this package. In here imports point
one way: `cli`, then `worker`, `feed`, `executor` and `handover`, then `partition` and `start_line`, then `engine`,
`broker`, `kubernetes` and `health`, then `kafka_reach`, `logs` and `deed_log`, `compression`, `partitioner`,
`member_beats` and `machine_clock`, `settings`, `errors`. import-linter checks that.
`printing` makes texts safe to print, and imports none of them.
"""
