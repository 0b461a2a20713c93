"""The Kafka that `evictstream broker` and `evictstream demo` start for trying out."""

from __future__ import annotations

from evictstream.streams.settings.group import SettingsGroup


class TrialSettings(SettingsGroup):
    """Where the embedded Kafka comes from."""

    kafka_repository: str | None = None
    """Address of a Maven repository that has Kafka's files, such as a mirror in your network. Without it, Maven
    Central. evictstream knows the SHA-256 of each file and runs no other."""
