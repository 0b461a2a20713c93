"""The engine's own ideas: one writer for each partition, its outbox, takeover, markers, lease and timers.

Nothing in here imports aiokafka or Faust, or reads a clock by itself: `ports` says what is handed in.
"""
