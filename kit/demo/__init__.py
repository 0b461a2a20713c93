"""The demo: a recorded incident, played to real workers, judged by an oracle that shares no code with them.

`recording` reads an incident, `player` re-stamps it to now, `executor` answers commands as an executor and a cluster
would, `workers` starts and kills, `judgement` asks the oracle, `board` and `view` show it, `story` tells it all.
"""
