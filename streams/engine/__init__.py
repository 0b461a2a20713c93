"""The streaming engine: one writer for each partition, whose state, messages and positions commit in one transaction.

- `core`: the engine's own ideas. It knows neither aiokafka nor Faust, and asks for both through `core.ports`.
- `kafka`: the ports' one implementation on aiokafka, and everything that mends aiokafka.
- `faust`: the application that runs the core in a consumer group.
- `clock`: the machine's clock.
"""
