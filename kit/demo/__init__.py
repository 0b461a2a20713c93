"""The demo: a recorded incident, played to real workers, judged by an oracle that shares no code with them.

`recording` reads an incident, `topics` writes and reads what feeds, executors and workers put on topics, `workers`
starts and kills, `story` tells it all, `judgement` asks the oracle, `summary` says how it went.
"""
