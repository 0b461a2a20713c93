"""What the API server refuses in tolerations and taints, word for word as `evictstream rules` says it.

Since 1.37 the key of a toleration is also checked by rules that are generated from the type, beside the handwritten
ones; both texts are the same.
"""

from __future__ import annotations

import http
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pytest

from evictstream.kit.rules.validation import FieldError, validate_pod_tolerations, validate_taints
from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import NODES, node, pod, pods

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

LISTS: Final = 400
DRY_RUN: Final = "?dryRun=All"
KEYS: Final = (
    "",
    "key",
    "example.com/key",
    "Example.com/key",
    "a b",
    "a/b/c",
    "/key",
    "example.com/",
    "-key",
    "k" * 63,
    "k" * 64,
    f"{'p' * 253}/key",
    f"{'p' * 254}/key",
    'quote"brace}',
    "ключ",
)
OPERATORS: Final = (None, "", "Equal", "Exists", "Gt", "Lt", "exists", "<")
VALUES: Final = (None, "", "value", "5", "-5", "05", "v" * 63, "v" * 64, "a b", "{}")
EFFECTS: Final = (None, "", "NoExecute", "NoSchedule", "PreferNoSchedule", "noexecute", "NoExecute ")
SECONDS: Final = (None, None, 0, -1, 30, 2**63 - 1, -(2**63))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, built_binaries: None) -> Iterator[ApiClient]:
    """An API server that is asked 800 times and stores nothing but one node."""
    with ControlPlane(tmp_path_factory.mktemp("plane") / "plane", taint_eviction=False) as plane:
        plane.client().create(NODES, node("n-0", "z-a"))
        yield plane.client()


def random_lists(seed: int, fields: Mapping[str, Sequence[object]]) -> Iterator[list[Object]]:
    """Draw lists of up to three entries; half of the fields are usual, so that most entries break few rules."""
    draw = random.Random(seed)  # noqa: S311 -- examples
    usual = {"key": "key", "operator": "Exists", "effect": "NoExecute"}
    for _ in range(LISTS):
        entries = []
        for _ in range(draw.randint(1, 3)):
            chosen = {name: draw.choice((usual.get(name), draw.choice(values))) for name, values in fields.items()}
            entries.append({name: value for name, value in chosen.items() if value is not None})
        yield entries


def causes(call: Callable[[], object]) -> list[str]:
    """What the API server refuses, each as field and message, and once: v1.36.3 says some lines twice."""
    try:
        call()
    except RefusedError as error:
        if error.status != http.HTTPStatus.UNPROCESSABLE_ENTITY:  # a type that it cannot decode
            raise
        lines = (f"{each['field']}: {each['message']}" for each in error.answer["details"]["causes"])
        return list(dict.fromkeys(lines))
    return []


def said(errors: Sequence[FieldError]) -> list[str]:
    return [str(error) for error in errors]


def test_tolerations_are_refused_word_for_word(client: ApiClient) -> None:
    fields = {"key": KEYS, "operator": OPERATORS, "value": VALUES, "effect": EFFECTS, "tolerationSeconds": SECONDS}
    refused = 0
    for number, tolerations in enumerate(random_lists(371, fields)):
        asked = pod(f"p-{number}", "n-0", tolerations=tolerations)
        answered = causes(lambda asked=asked: client.create(f"{pods()}{DRY_RUN}", asked))  # type: ignore[misc]
        assert answered == said(validate_pod_tolerations(asked)), tolerations
        refused += bool(answered)
    assert LISTS / 4 < refused < LISTS


def test_taints_are_refused_word_for_word(client: ApiClient) -> None:
    """The API server calls them `metadata.taints`, in all versions."""
    refused = 0
    for taints in random_lists(372, {"key": KEYS, "value": VALUES, "effect": EFFECTS}):
        change = {"spec": {"taints": taints}}
        answered = causes(lambda change=change: client.patch(f"{NODES}/n-0{DRY_RUN}", change))  # type: ignore[misc]
        expected = [each.replace("spec.taints", "metadata.taints", 1) for each in said(validate_taints(taints))]
        assert answered == expected, taints
        refused += bool(answered)
    assert LISTS / 4 < refused < LISTS
