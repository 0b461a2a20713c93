"""The service's logic over recorded inputs, under a clock that only the recording moves; nothing goes to a live topic.

`replay.py` runs it, `evictions.py` says what became of each pod, `comparison.py` puts two runs beside one another.
"""
