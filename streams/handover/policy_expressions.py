"""The expressions (CEL) of the policy, in its two variants: what they share is written once.

The policy writes the annotation as text, since CEL makes no JSON, and finds an entry by the beginning of its text: the
identity of its toleration. The API server takes neither quotes nor braces in keys, values or effects of tolerations, so
no such beginning stands within another entry. docs/managed-clusters.md has the contract of the annotation.
"""

from __future__ import annotations

from typing import Final

from evictstream.models.kubernetes.shapes import MIRROR_ANNOTATION, TOLERATIONS_ANNOTATION

MOST_SECONDS: Final = 1_000_000_000
"""31 years, in place of more: from 9,223,372,037 s on the built-in controller's arithmetic overflows, and it evicts at
once."""

_ANNOTATIONS: Final = "metadata.?annotations.orValue({})"
_IS_THERE: Final = f'"{TOLERATIONS_ANNOTATION}" in object.{_ANNOTATIONS}'
_IS_TAKEN_OFF: Final = (
    f'request.operation == "UPDATE" && "{TOLERATIONS_ANNOTATION}" in oldObject.{_ANNOTATIONS} &&\n  !({_IS_THERE})'
)
_TOLERATIONS: Final = "object.spec.?tolerations.orValue([])"
_IS_TIMED: Final = 'has(t.tolerationSeconds) && t.?effect.orValue("") == "NoExecute"'
_BUILT_IN: Final = r",\"builtInSeconds\":"

NOT_A_MIRROR: Final = f'!("{MIRROR_ANNOTATION}" in object.{_ANNOTATIONS})'


def worth_a_look(*, is_backstop: bool) -> str:
    """Return the condition under which the policy looks at a request.

    Every creation: the API server calls the policy again after a webhook has added tolerations only if it was called
    before. Of updates only those after which there may be something to write; most updates of pods are none.
    """
    timed = f"{_TOLERATIONS}.exists(t, {_IS_TIMED})"
    if is_backstop:  # what was moved still has seconds
        edited = f"{_TOLERATIONS} != oldObject.spec.?tolerations.orValue([])"
        timed = f"{timed} &&\n  (!({_IS_THERE}) ||\n  {edited})"
    return f'request.operation == "CREATE" ||\n({_IS_TAKEN_OFF}) ||\n{timed}'


def _field(name: str) -> str:
    return rf'(has(t.{name}) ? "\"{name}\":\"" + t.{name} + "\"," : "")'


def _shared() -> dict[str, str]:
    identity = " +\n  ".join(map(_field, ("key", "operator", "value", "effect")))
    return {
        # By accident as a rule, as by a client that puts an object without fields that it does not know.
        "takenOff": _IS_TAKEN_OFF,
        "before": (
            f'(variables.takenOff ? oldObject : object).metadata.?annotations[?"{TOLERATIONS_ANNOTATION}"]'
            '\n  .orValue("").replace(" ", "")'
        ),
        "tolerations": _TOLERATIONS,
        # Of each toleration: how its entry begins.
        "heads": f'variables.tolerations.map(t, "{{" +\n  {identity} +\n  "\\"tolerationSeconds\\":")',
        # Of each toleration: how its entry went on before, up to its brace.
        "rests": (
            'variables.heads.map(head, !variables.before.contains(head) ? "" :\n'
            '  variables.before.substring(variables.before.indexOf(head) + size(head)).split("}")[0])'
        ),
    }


def _is_first(index: str) -> str:
    """Whether a toleration is the first of its identity: no other one is ever in use."""
    return f"variables.heads.indexOf(variables.heads[{index}]) == {index}"


def backstop_variables(more: int) -> dict[str, str]:
    """Return the variables of the variant in which the built-in controller evicts `more` seconds later."""
    return {
        "more": str(more),
        "most": str(MOST_SECONDS),
        **_shared(),
        # Those of entries that are still in force: nobody has edited the seconds that were written with them.
        "kept": (
            'variables.rests.transformList(i, rest, rest != "" &&\n'
            "  (has(variables.tolerations[i].tolerationSeconds) ?\n"
            f'    rest.endsWith("{_BUILT_IN}" + string(variables.tolerations[i].tolerationSeconds)) :\n'
            '    !rest.contains("builtInSeconds")) ? rest : "")'
        ),
        "moved": (
            f'variables.tolerations.transformList(i, t, {_IS_TIMED} &&\n  variables.kept[i] == "" && {_is_first("i")})'
        ),
        "written": (
            "variables.tolerations.transformList(i, t, !variables.moved[i] ? 0 :\n"
            "  t.tolerationSeconds > variables.most ? variables.most :\n"
            "  (t.tolerationSeconds > 0 ? t.tolerationSeconds : 0) + variables.more)"
        ),
        "entries": (
            "variables.heads.transformList(i, head,\n"
            "  variables.moved[i] ? head + string(variables.tolerations[i].tolerationSeconds) +\n"
            f'    "{_BUILT_IN}" + string(variables.written[i]) + "}}" :\n'
            f'  variables.kept[i] != "" && {_is_first("i")} ? head + variables.kept[i] + "}}" :\n'
            '  "").filter(entry, entry != "")'
        ),
    }


def handover_variables() -> dict[str, str]:
    """Return the variables of the variant in which the built-in controller never evicts what was moved."""
    return {
        **_shared(),
        "moved": f"variables.tolerations.transformList(i, t, {_IS_TIMED} &&\n  {_is_first('i')})",
        # An entry of the other variant whose seconds nobody has edited gives back what it had.
        "entries": (
            "variables.heads.transformList(i, head,\n"
            "  variables.moved[i] && variables.rests[i].endsWith(\n"
            f'    "{_BUILT_IN}" + string(variables.tolerations[i].tolerationSeconds)) ?\n'
            '    head + variables.rests[i].split(",")[0] + "}" :\n'
            '  variables.moved[i] ? head + string(variables.tolerations[i].tolerationSeconds) + "}" :\n'
            '  !has(variables.tolerations[i].tolerationSeconds) && variables.rests[i] != "" &&\n'
            f'    {_is_first("i")} ? head + variables.rests[i] + "}}" :\n'
            '  "").filter(entry, entry != "")'
        ),
    }


def patch(*, is_backstop: bool) -> str:
    """Return the one patch: of two, the second would be applied although the first has failed."""
    what = 'op: "replace"' if is_backstop else 'op: "remove"'
    value = ", value: variables.written[i]" if is_backstop else ""
    escaped = TOLERATIONS_ANNOTATION.replace("/", "~1")
    return (
        "!variables.takenOff && !variables.moved.exists(m, m) ? [] :\n"
        '(has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +\n'
        f'[JSONPatch{{op: "add", path: "/metadata/annotations/{escaped}",\n'
        '  value: "[" + variables.entries.join(",") + "]"}] +\n'
        "variables.tolerations.transformList(i, t, variables.moved[i],\n"
        f'  JSONPatch{{{what}, path: "/spec/tolerations/" + string(i) + "/tolerationSeconds"{value}}})'
    )
