"""The eviction service: the logic of a partition, its gates and timers, run by the engine."""
