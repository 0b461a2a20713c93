"""`python -m tests.bench`: how fast, how late and how large one worker is, beside its broker on one machine."""
