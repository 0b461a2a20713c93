"""The process of a worker: timers, gates, freshness, watchdog, health and metrics around its partitions."""
