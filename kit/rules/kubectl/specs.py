"""How `kubectl taint` reads a taint on its command line (semantics.md 10).

    ADD    = key "=" [value] ":" effect | key ":" effect
    REMOVE = key "-" | key ":" effect "-" | key "=" [value] ":" effect "-"

Sources in `staging/src/k8s.io/kubectl/pkg/cmd/taint/`: `parseTaints` and `parseTaint` of `utils.go`, `Validate` of
`taint.go`.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from evictstream.kit.rules.kubectl.errors import KubectlError, Refusal
from evictstream.kit.rules.validation import EFFECTS
from evictstream.kit.rules.validation.labels import label_key_errors, label_value_errors
from evictstream.models.kubernetes.taints import Taint, is_same_taint

REMOVAL_MARK: Final = "-"


class TaintChanges(msgspec.Struct, frozen=True):
    """The changes of one command.

    Attributes:
        add: taints to add, in the order of the command.
        remove: taints to remove, without value; without effect it stands for all effects of the key.
    """

    add: tuple[Taint, ...] = ()
    remove: tuple[Taint, ...] = ()


def parse_taints(specs: Iterable[str]) -> TaintChanges:
    """Read the taints of one command.

    A text that ends in `-` is a removal; one `-` is cut off first. The value of a removal must be legal but is ignored.
    An addition needs an effect. `check_conflicts` finds taints that are both added and removed.

    Raises:
        KubectlError: the first text that kubectl would refuse.
    """
    add: list[Taint] = []
    remove: list[Taint] = []
    for spec in specs:
        if spec.endswith(REMOVAL_MARK):
            taint = parse_taint(spec.removesuffix(REMOVAL_MARK))
            remove.append(Taint(key=taint.key, effect=taint.effect))
            continue
        taint = parse_taint(spec)
        if not taint.effect:
            raise KubectlError(Refusal.INVALID_SPEC, f"invalid taint spec: {spec}")
        if any(is_same_taint(taint, other) for other in add):
            shown = f"{{{taint.key} {taint.value} {taint.effect} <nil>}}"  # as Go prints a struct
            raise KubectlError(Refusal.DUPLICATE, f"duplicated taints with the same key and effect: {shown}")
        add.append(taint)
    return TaintChanges(tuple(add), tuple(remove))


def parse_taint(text: str) -> Taint:
    """Read one taint without the `-` of a removal: `key=value:effect`, `key:effect` or `key`.

    Without a `:` the whole text is the key, so `foo=bar` is an illegal key.

    Raises:
        KubectlError: effect, form, value and key are checked in this order; only the first problem is reported.
    """
    head, *effects = text.split(":")
    if len(effects) > 1:
        raise KubectlError(Refusal.INVALID_SPEC, f"invalid taint spec: {text}")
    if not effects:
        _check(text, label_key_errors(head))
        return Taint(key=head)
    effect = effects[0]
    if effect not in EFFECTS:
        raise KubectlError(Refusal.INVALID_EFFECT, f"invalid taint effect: {effect}, unsupported taint effect")
    key, *values = head.split("=")
    if len(values) > 1:
        raise KubectlError(Refusal.INVALID_SPEC, f"invalid taint spec: {text}")
    value = values[0] if values else ""
    _check(text, label_value_errors(value))
    _check(text, label_key_errors(key))
    return Taint(key=key, value=value, effect=effect)


def check_conflicts(changes: TaintChanges) -> None:
    """Refuse that one command adds and removes the same taint; a removal without effect stands for every effect.

    Raises:
        KubectlError: names each such pair by its removal.
    """
    pairs = [
        f"{removed.key}={removed.effect}"
        for added in changes.add
        for removed in changes.remove
        if added.key == removed.key and removed.effect in ("", added.effect)
    ]
    if pairs:
        raise KubectlError(
            Refusal.CONFLICT,
            f"can not both modify and remove the following taint(s) in the same command: {', '.join(pairs)}",
        )


def _check(text: str, broken: tuple[str, ...]) -> None:
    if broken:
        raise KubectlError(Refusal.INVALID_SPEC, f"invalid taint spec: {text}, {'; '.join(broken)}")
