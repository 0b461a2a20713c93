"""`kubectl taint`: how it reads taints, what it does to a node's, and its messages (semantics.md 10)."""

from evictstream.kit.rules.kubectl.errors import KubectlError, Refusal
from evictstream.kit.rules.kubectl.specs import TaintChanges, check_conflicts, parse_taint, parse_taints
from evictstream.kit.rules.kubectl.taint import (
    Tainted,
    TaintWord,
    already_there,
    apply_changes,
    remove_key,
    remove_taint,
    reorganize,
)

__all__ = [
    "KubectlError",
    "Refusal",
    "TaintChanges",
    "TaintWord",
    "Tainted",
    "already_there",
    "apply_changes",
    "check_conflicts",
    "parse_taint",
    "parse_taints",
    "remove_key",
    "remove_taint",
    "reorganize",
]
