"""The engine's own ideas: one writer for each partition, its outbox, take-over, markers, lease and timers.

Nothing in here imports aiokafka or Faust, or reads a clock by itself: `ports` says what is handed in.
"""
