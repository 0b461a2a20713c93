"""Whatever stands in a file, the commands answer with 0, 1 or 2 and never with a failure of ours."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.streams.cli.main import run
from tests.harness.examples import examples

WORDS = st.sampled_from(
    ["", "a", "Exists", "Equal", "Gt", "5", "NoExecute", "NoSchedule", "2024-01-01T00:00:00Z", "\x00", "é"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), WORDS)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Mostly what belongs there, sometimes anything."""
    return st.one_of(strategy, strategy, strategy, ANYTHING)


def entries(*names: str) -> st.SearchStrategy[object]:
    entry = st.fixed_dictionaries({}, optional={name: maybe(WORDS) for name in names} | {"tolerationSeconds": ANYTHING})
    return maybe(st.lists(maybe(entry), max_size=3))


AMOUNTS = maybe(st.dictionaries(st.sampled_from(["cpu", "nvidia.com/gpu", "/"]), maybe(WORDS), max_size=2))
CONTAINERS = maybe(
    st.lists(
        st.fixed_dictionaries({"resources": maybe(st.fixed_dictionaries({"requests": AMOUNTS, "limits": AMOUNTS}))})
    )
)
SPEC = st.fixed_dictionaries(
    {},
    optional={
        "taints": entries("key", "value", "effect", "timeAdded"),
        "tolerations": entries("key", "operator", "value", "effect"),
        "unschedulable": maybe(st.booleans()),
        "hostNetwork": maybe(st.booleans()),
        "containers": CONTAINERS,
        "initContainers": CONTAINERS,
        "resources": ANYTHING,
    },
)
METADATA = st.fixed_dictionaries(
    {"name": maybe(st.just("x"))},
    optional={
        "uid": maybe(WORDS),
        "namespace": maybe(WORDS),
        "annotations": maybe(st.dictionaries(WORDS, maybe(WORDS), max_size=2)),
        "ownerReferences": maybe(st.lists(maybe(st.fixed_dictionaries({"kind": ANYTHING})), max_size=2)),
    },
)
OBJECT = st.fixed_dictionaries(
    {"kind": maybe(st.sampled_from(["Node", "Pod", "List", "NodeList"]))},
    optional={
        "apiVersion": maybe(st.just("v1")),
        "metadata": maybe(METADATA),
        "spec": maybe(SPEC),
        "status": ANYTHING,
        "items": ANYTHING,
    },
)


@settings(max_examples=examples(40), deadline=None)
@given(objects=st.lists(st.one_of(OBJECT, OBJECT, OBJECT, ANYTHING), max_size=3))
def test_any_objects(objects: list[object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "objects")
        Path(path).write_text("\n".join(json.dumps(each) for each in objects), encoding="utf-8")
        for arguments in (
            ["verdict", "--node", path, "--pod", path, "--comparison-operators"],
            ["taint", path, "a:NoExecute", "--overwrite", "-o", "json"],
            ["tolerations", path, "-o", "json"],
        ):
            assert run(["rules", *arguments]) in {0, 1, 2}


@settings(max_examples=examples(40), deadline=None)
@given(text=st.text(alphabet="ab:{}[],-&*!<>|?\"' \n#0123.\\%@~ynul", max_size=40))
def test_any_text(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects"
        path.write_text(text, encoding="utf-8")
        assert run(["rules", "tolerations", str(path)]) in {1, 2}
