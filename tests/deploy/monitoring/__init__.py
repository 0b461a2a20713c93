"""Alerts and dashboards, made from the definitions of metrics: `python -m tests.deploy.monitoring` writes the files."""
