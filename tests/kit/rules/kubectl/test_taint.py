"""semantics.md 10; cases of staging/src/k8s.io/kubectl/pkg/cmd/taint/utils_test.go and taint_test.go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.rules.kubectl import (
    KubectlError,
    Refusal,
    TaintChanges,
    TaintWord,
    already_there,
    apply_changes,
    parse_taints,
    remove_key,
    remove_taint,
    reorganize,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint

Taints = tuple[Taint, ...]

FOO = Taint("foo", "", NO_SCHEDULE)
FOO_BAR = Taint("foo", "bar", NO_SCHEDULE)
FOO_BARZ = Taint("foo", "barz", NO_SCHEDULE)
FOO_1 = Taint("foo_1", "", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("taints", "removed", "left", "found"),
    [
        pytest.param((FOO,), FOO_1, (FOO,), False, id="TestDeleteTaint: different name"),
        pytest.param((FOO,), Taint("foo", "", NO_EXECUTE), (FOO,), False, id="TestDeleteTaint: different effect"),
        pytest.param((FOO,), FOO, (), True, id="TestDeleteTaint: successfully"),
        pytest.param((), FOO, (), False, id="TestDeleteTaint: from empty taint array"),
        pytest.param((FOO_BAR,), FOO, (), True, id="1 the value does not count"),
    ],
)
def test_remove_taint(taints: Taints, removed: Taint, left: Taints, *, found: bool) -> None:
    assert remove_taint(taints, removed) == (left, found)


@pytest.mark.parametrize(
    ("taints", "key", "left", "found"),
    [
        pytest.param((FOO_BAR,), "foo_1", (FOO_BAR,), False, id="TestDeleteTaintByKey: unsuccessfully"),
        pytest.param((FOO_BAR,), "foo", (), True, id="TestDeleteTaintByKey: successfully"),
        pytest.param((), "foo", (), False, id="TestDeleteTaintByKey: from empty taint array"),
        pytest.param((FOO_BAR, Taint("foo", "", NO_EXECUTE), FOO_1), "foo", (FOO_1,), True, id="10 all effects"),
    ],
)
def test_remove_key(taints: Taints, key: str, left: Taints, *, found: bool) -> None:
    assert remove_key(taints, key) == (left, found)


@pytest.mark.parametrize(
    ("added", "keys"),
    [
        pytest.param((), (), id="TestCheckIfTaintsAlreadyExists: empty array"),
        pytest.param((Taint("foo_1", "", NO_EXECUTE),), (), id="TestCheckIfTaintsAlreadyExists: no match"),
        pytest.param(
            (Taint("foo_2", "", NO_SCHEDULE),), ("foo_2",), id="TestCheckIfTaintsAlreadyExists: match one taint"
        ),
        pytest.param(
            (Taint("foo_2", "", NO_SCHEDULE), Taint("foo_3", "", NO_SCHEDULE)),
            ("foo_2", "foo_3"),
            id="TestCheckIfTaintsAlreadyExists: match two taints",
        ),
        pytest.param(
            (Taint("foo_3", "", NO_SCHEDULE), Taint("foo_1", "", NO_SCHEDULE)),
            ("foo_3", "foo_1"),
            id="checkIfTaintsAlreadyExists: order of the command",
        ),
    ],
)
def test_already_there(added: Taints, keys: tuple[str, ...]) -> None:
    old = tuple(Taint(f"foo_{number}", "bar", NO_SCHEDULE) for number in (1, 2, 3))
    assert already_there(old, added) == keys


@pytest.mark.parametrize(
    ("overwrite", "add", "remove", "taints", "word", "errors"),
    [
        pytest.param(True, (), (), (FOO_BAR,), TaintWord.MODIFIED, (), id="TestReorganizeTaints: overwrite is true"),
        pytest.param(False, (), (), (FOO_BAR,), TaintWord.UNTAINTED, (), id="TestReorganizeTaints: overwrite is false"),
        pytest.param(
            False,
            (Taint("foo_1", "", NO_EXECUTE),),
            (),
            (Taint("foo_1", "", NO_EXECUTE), FOO_BAR),
            TaintWord.TAINTED,
            (),
            id="TestReorganizeTaints: add new taint",
        ),
        pytest.param(
            False, (), (FOO,), (), TaintWord.UNTAINTED, (), id="TestReorganizeTaints: delete taint with effect"
        ),
        pytest.param(
            False, (), (Taint("foo"),), (), TaintWord.UNTAINTED, (), id="TestReorganizeTaints: delete, no effect"
        ),
        pytest.param(
            False,
            (),
            (FOO_1,),
            (FOO_BAR,),
            TaintWord.UNTAINTED,
            ('taint "foo_1:NoSchedule" not found',),
            id="TestReorganizeTaints: delete non-exist taint",
        ),
        pytest.param(
            False,
            (FOO_1,),
            (FOO,),
            (FOO_1,),
            TaintWord.MODIFIED,
            (),
            id="TestReorganizeTaints: add new taint and delete old one",
        ),
        pytest.param(
            True, (FOO_BARZ,), (), (FOO_BARZ,), TaintWord.MODIFIED, (), id="10 overwrite takes the place of the old one"
        ),
        pytest.param(
            False,
            (FOO_1,),
            (Taint("nope"),),
            (FOO_1, FOO_BAR),
            TaintWord.TAINTED,
            ('taint "nope" not found',),
            id="10 added, and the last removal found nothing",
        ),
        pytest.param(
            False,
            (FOO_1,),
            (Taint("nope"), FOO),
            (FOO_1,),
            TaintWord.MODIFIED,
            ('taint "nope" not found',),
            id="10 added, and the last removal found something",
        ),
        pytest.param(
            False,
            (FOO_1,),
            (FOO, Taint("nope")),
            (FOO_1,),
            TaintWord.TAINTED,
            ('taint "nope" not found',),
            id="10 only the last removal counts for the word",
        ),
    ],
)
def test_reorganize(
    add: Taints, remove: Taints, taints: Taints, word: TaintWord, errors: tuple[str, ...], *, overwrite: bool
) -> None:
    found = reorganize((FOO_BAR,), TaintChanges(add, remove), overwrite=overwrite)
    assert found.taints == taints
    assert found.word is word
    assert found.errors == errors


DEDICATED = Taint("dedicated", "namespaceA", NO_SCHEDULE)
DEDICATED_SOFT = Taint("dedicated", "namespaceA", PREFER_NO_SCHEDULE)
FOO_SOFT = Taint("foo", "bar", PREFER_NO_SCHEDULE)


@pytest.mark.parametrize(
    ("old", "specs", "overwrite", "new", "word"),
    [
        pytest.param(
            (), ["foo=bar:NoSchedule"], False, (FOO_BAR,), TaintWord.TAINTED, id="TestTaint: effect NoSchedule"
        ),
        pytest.param(
            (),
            ["foo=bar:PreferNoSchedule"],
            False,
            (FOO_SOFT,),
            TaintWord.TAINTED,
            id="TestTaint: effect PreferNoSchedule",
        ),
        pytest.param(
            (FOO_BAR,),
            ["foo=barz:NoSchedule"],
            True,
            (FOO_BARZ,),
            TaintWord.MODIFIED,
            id="TestTaint: update an existing taint, change the value from bar to barz",
        ),
        pytest.param(
            (),
            ["dedicated=namespaceA:NoSchedule", "foo=bar:PreferNoSchedule"],
            False,
            (DEDICATED, FOO_SOFT),
            TaintWord.TAINTED,
            id="TestTaint: two taints",
        ),
        pytest.param(
            (DEDICATED, DEDICATED_SOFT),
            ["dedicated:NoSchedule-"],
            False,
            (DEDICATED_SOFT,),
            TaintWord.UNTAINTED,
            id="TestTaint: same key but different effect, remove one by exact key and effect",
        ),
        pytest.param(
            (DEDICATED, DEDICATED_SOFT),
            ["dedicated-"],
            False,
            (),
            TaintWord.UNTAINTED,
            id="TestTaint: same key but different effect, remove all with wildcard",
        ),
        pytest.param(
            (DEDICATED, FOO_SOFT),
            ["dedicated:NoSchedule-", "foo=barz:PreferNoSchedule"],
            True,
            (Taint("foo", "barz", PREFER_NO_SCHEDULE),),
            TaintWord.MODIFIED,
            id="TestTaint: update one of two and remove the other",
        ),
        pytest.param(
            (DEDICATED, FOO_SOFT),
            ["new:NoExecute", "newer:NoExecute"],
            False,
            (Taint("new", "", NO_EXECUTE), Taint("newer", "", NO_EXECUTE), DEDICATED, FOO_SOFT),
            TaintWord.TAINTED,
            id="10 new taints first, old ones follow in their order",
        ),
        pytest.param(
            (Taint("foo", "bar", NO_SCHEDULE, 5),),
            ["foo=bar:NoSchedule"],
            True,
            (FOO_BAR,),
            TaintWord.MODIFIED,
            id="10 an overwritten taint loses timeAdded",
        ),
        pytest.param(
            (Taint("foo", "bar", NO_SCHEDULE, 5),),
            ["x:NoSchedule"],
            False,
            (Taint("x", "", NO_SCHEDULE), Taint("foo", "bar", NO_SCHEDULE, 5)),
            TaintWord.TAINTED,
            id="10 an old one keeps timeAdded",
        ),
        pytest.param(
            (FOO_BAR,),
            ["foo:NoExecute"],
            False,
            (Taint("foo", "", NO_EXECUTE), FOO_BAR),
            TaintWord.TAINTED,
            id="10 another effect is another taint",
        ),
    ],
)
def test_apply(old: Taints, specs: list[str], new: Taints, word: TaintWord, *, overwrite: bool) -> None:
    found = apply_changes(old, parse_taints(specs), overwrite=overwrite, node_name="node-name")
    assert found.taints == new
    assert found.word is word


@pytest.mark.parametrize(
    ("old", "specs", "overwrite", "kind", "message"),
    [
        pytest.param(
            (FOO_BAR,),
            ["foo=bar:NoSchedule"],
            False,
            Refusal.ALREADY_EXISTS,
            "node node-name already has foo taint(s) with same effect(s) and --overwrite is false",
            id="TestTaint: can't update existing taint, since overwrite is not set",
        ),
        pytest.param(
            (DEDICATED, FOO_SOFT),
            ["foo:PreferNoSchedule", "dedicated:NoSchedule"],
            False,
            Refusal.ALREADY_EXISTS,
            "node node-name already has foo,dedicated taint(s) with same effect(s) and --overwrite is false",
            id="10 all of them are named",
        ),
        pytest.param((), ["foo-"], False, Refusal.NOT_FOUND, 'taint "foo" not found', id="10 removal of what is not"),
        pytest.param(
            (), ["foo-"], True, Refusal.NOT_FOUND, 'taint "foo" not found', id="10 overwrite does not help with that"
        ),
        pytest.param(
            (FOO_BAR,),
            ["foo:NoExecute-", "x-"],
            False,
            Refusal.NOT_FOUND,
            '[taint "foo:NoExecute" not found, taint "x" not found]',
            id="NewAggregate: several are put into brackets",
        ),
        pytest.param(
            (), ["x-", "x-"], False, Refusal.NOT_FOUND, 'taint "x" not found', id="NewAggregate: each text once"
        ),
        pytest.param(
            (FOO_BAR,), ["foo-", "foo-"], False, Refusal.NOT_FOUND, 'taint "foo" not found', id="10 removed twice"
        ),
    ],
)
def test_refused(old: Taints, specs: list[str], kind: Refusal, message: str, *, overwrite: bool) -> None:
    with pytest.raises(KubectlError) as caught:
        apply_changes(old, parse_taints(specs), overwrite=overwrite, node_name="node-name")
    assert caught.value.kind is kind
    assert str(caught.value) == message


SOME = st.lists(
    st.builds(
        Taint, st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "v"]), st.sampled_from([NO_EXECUTE, "NoSchedule"])
    ),
    max_size=4,
    unique_by=lambda taint: (taint.key, taint.effect),
).map(tuple)


@given(old=SOME, new=SOME)
def test_every_added_taint_is_on_the_node_exactly_once(old: Taints, new: Taints) -> None:
    found = apply_changes(old, TaintChanges(add=new), overwrite=True)
    assert found.taints[: len(new)] == new
    identities = [(taint.key, taint.effect) for taint in found.taints]
    assert len(identities) == len(set(identities))
    assert set(identities) == {(taint.key, taint.effect) for taint in (*old, *new)}


@given(old=SOME, new=SOME)
def test_removing_what_was_added_leaves_what_it_did_not_replace(old: Taints, new: Taints) -> None:
    tainted = apply_changes(old, TaintChanges(add=new), overwrite=True).taints
    removals = tuple(Taint(taint.key, "", taint.effect) for taint in new)
    left = apply_changes(tainted, TaintChanges(remove=removals)).taints
    replaced = {(taint.key, taint.effect) for taint in new}
    assert left == tuple(taint for taint in old if (taint.key, taint.effect) not in replaced)
