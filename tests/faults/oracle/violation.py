"""What the oracle says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be.

    Attributes:
        rule: a few words that name the rule, always the same for the same rule, for counting.
        cluster: empty if it is about none.
        node: its name, as `cluster`.
        pod_uid: as `cluster`.
        text: what was seen and what had to be.
    """

    rule: str
    cluster: str
    node: str
    pod_uid: str
    text: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.rule}: {self.cluster}/{self.node} {self.pod_uid}: {self.text}"
