"""Serves health and metrics of a process: of a worker, and of a feed."""
