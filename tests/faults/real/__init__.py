"""Schedules on a real Kafka: real worker processes, real brokers, faults by real means."""
