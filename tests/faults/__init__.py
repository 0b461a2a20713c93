"""The torture: random histories and random faults from a seed, judged by `kit/oracle`, which shares no code with
the service.

- `plan`, `generate`, `stories`, `garbage`: what happens, from a seed.
- `actor`: what the executor and its cluster answer.
- `numbers`: the settings, for the service and for the oracle.
- `simulated`: runs in this process under virtual time, thousands of them.
- `real`: runs on a real Kafka with real faults.

`python -m tests.faults` runs it; see `__main__`.
"""
