"""The torture: random histories and random faults from a seed, judged by an oracle that shares no code with us.

- `plan`, `generate`, `stories`, `garbage`: what happens, from a seed.
- `actor`: what the executor and its cluster answer.
- `oracle`: what may come out.
- `simulated`: runs in this process under virtual time, thousands of them.
- `real`: runs on a real Kafka with real faults.

`python -m tests.faults` runs it; see `__main__`.
"""
