"""The commands of kubectl that change taints: their arguments, effects and messages (semantics.md 10)."""

from evictstream.kit.rules.kubectl.arguments import (
    TaintCommand,
    check_conflicts,
    check_selection,
    is_taint_argument,
    parse_command,
    split_arguments,
)
from evictstream.kit.rules.kubectl.cordon import Cordoned, CordonWord, cordon, uncordon
from evictstream.kit.rules.kubectl.errors import KubectlError, Refusal
from evictstream.kit.rules.kubectl.specs import TaintChanges, parse_taint, parse_taints
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
    "CordonWord",
    "Cordoned",
    "KubectlError",
    "Refusal",
    "TaintChanges",
    "TaintCommand",
    "TaintWord",
    "Tainted",
    "already_there",
    "apply_changes",
    "check_conflicts",
    "check_selection",
    "cordon",
    "is_taint_argument",
    "parse_command",
    "parse_taint",
    "parse_taints",
    "remove_key",
    "remove_taint",
    "reorganize",
    "split_arguments",
    "uncordon",
]
