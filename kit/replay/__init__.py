"""The service's logic over recorded inputs, under a clock that only the recording moves; nothing goes to a live topic.

`replay.py` runs it, `evictions.py` gives the outcome for each pod, `comparison.py` compares two runs.
"""
