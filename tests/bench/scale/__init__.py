"""Scale: a million pods in one worker, and an hour of a hundred clusters. Run by `make scale`."""
