"""The demo: a recorded incident, played to two real workers of which one is killed, and judged by the oracle.

`story` tells it from beginning to end, `workers` are the processes, `play` stands for cluster, feed and executor, and
`judgement` asks the oracle about all that is on the topics.
"""
