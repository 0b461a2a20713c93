"""What a brake holds, in words."""

from evictstream.models.messages.brake import Brake

MOST_NAMES_TOLD = 5
"""Names of a list that are told; the others are counted."""


def selection_text(brake: Brake) -> str:
    """Say what a brake holds, for people: `evictions in prod-eu-1 for node.kubernetes.io/unreachable`."""
    parts = [
        f"{word} {_listed(names)}"
        for word, names in (
            ("in cluster", brake.clusters),
            ("in zone", brake.zones),
            ("for taint", brake.taints),
            ("of namespace", brake.namespaces),
        )
        if names
    ]
    return " ".join(["evictions", *parts]) if parts else "all evictions"


def _listed(names: tuple[str, ...]) -> str:
    more = f" or {len(names) - MOST_NAMES_TOLD} more" if len(names) > MOST_NAMES_TOLD else ""
    return " or ".join(names[:MOST_NAMES_TOLD]) + more
