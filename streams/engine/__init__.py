"""Faust made lossless: transport, table, take-over, transactions and timers. It knows nothing of pods."""
