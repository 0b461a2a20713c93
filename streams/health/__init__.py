"""Serves health and metrics of a process: worker, feed or executor."""
