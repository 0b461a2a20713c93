"""semantics.md 10; cases of staging/src/k8s.io/kubectl/pkg/cmd/taint/utils_test.go, TestParseTaints, and more."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.kubectl import KubectlError, Refusal, check_conflicts, parse_taint, parse_taints
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("specs", "add", "remove"),
    [
        pytest.param(
            ["foo=abc:NoSchedule", "bar=abc:NoSchedule", "baz:NoSchedule", "qux:NoSchedule", "foobar=:NoSchedule"],
            [
                Taint("foo", "abc", NO_SCHEDULE),
                Taint("bar", "abc", NO_SCHEDULE),
                Taint("baz", "", NO_SCHEDULE),
                Taint("qux", "", NO_SCHEDULE),
                Taint("foobar", "", NO_SCHEDULE),
            ],
            [],
            id="TestParseTaints: add new taints",
        ),
        pytest.param(
            ["foo:NoSchedule-", "bar:NoSchedule-", "qux=:NoSchedule-", "dedicated-"],
            [],
            [
                Taint("foo", "", NO_SCHEDULE),
                Taint("bar", "", NO_SCHEDULE),
                Taint("qux", "", NO_SCHEDULE),
                Taint("dedicated"),
            ],
            id="TestParseTaints: delete taints",
        ),
        pytest.param(
            [
                "foo=abc:NoSchedule",
                "bar=abc:NoSchedule",
                "baz:NoSchedule",
                "qux:NoSchedule",
                "foobar=:NoSchedule",
                "foo:NoSchedule-",
                "bar:NoSchedule-",
                "baz=:NoSchedule-",
            ],
            [
                Taint("foo", "abc", NO_SCHEDULE),
                Taint("bar", "abc", NO_SCHEDULE),
                Taint("baz", "", NO_SCHEDULE),
                Taint("qux", "", NO_SCHEDULE),
                Taint("foobar", "", NO_SCHEDULE),
            ],
            [Taint("foo", "", NO_SCHEDULE), Taint("bar", "", NO_SCHEDULE), Taint("baz", "", NO_SCHEDULE)],
            id="TestParseTaints: add taints and delete taints",
        ),
        pytest.param([], [], [], id="parseTaints: nothing"),
        pytest.param(["a:NoExecute"], [Taint("a", "", NO_EXECUTE)], [], id="10 NoExecute"),
        pytest.param(["a:PreferNoSchedule"], [Taint("a", "", PREFER_NO_SCHEDULE)], [], id="10 PreferNoSchedule"),
        pytest.param(
            ["a:NoExecute", "a:NoSchedule"],
            [Taint("a", "", NO_EXECUTE), Taint("a", "", NO_SCHEDULE)],
            [],
            id="10 one key with two effects",
        ),
        pytest.param(
            ["example.com/my-app=x:NoSchedule"],
            [Taint("example.com/my-app", "x", NO_SCHEDULE)],
            [],
            id="10 key with prefix",
        ),
        pytest.param(["k=v:NoExecute-"], [], [Taint("k", "", NO_EXECUTE)], id="10 the value of a removal is ignored"),
        pytest.param(["k-", "k-"], [], [Taint("k"), Taint("k")], id="10 removals may repeat"),
        pytest.param(
            ["k=" + "v" * 63 + ":NoExecute"], [Taint("k", "v" * 63, NO_EXECUTE)], [], id="2.4 value of 63 characters"
        ),
        pytest.param(["k" * 63 + "-"], [], [Taint("k" * 63)], id="2.4 key of 63 characters"),
    ],
)
def test_what_is_read(specs: list[str], add: list[Taint], remove: list[Taint]) -> None:
    found = parse_taints(specs)
    assert list(found.add) == add
    assert list(found.remove) == remove


@pytest.mark.parametrize(
    ("specs", "kind", "message"),
    [
        pytest.param(
            [""],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: , name part must be non-empty; {NAME_RULE}",
            id="TestParseTaints: empty spec",
        ),
        pytest.param(
            ["foo=abc"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: foo=abc, {NAME_RULE}",
            id="TestParseTaints: value without effect",
        ),
        pytest.param(
            ["foo=abc=xyz:NoSchedule"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: foo=abc=xyz:NoSchedule",
            id="TestParseTaints: two values",
        ),
        pytest.param(
            ["foo=abc:xyz:NoSchedule"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: foo=abc:xyz:NoSchedule",
            id="TestParseTaints: two colons",
        ),
        pytest.param(
            ["foo"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: foo",
            id="TestParseTaints: invalid spec format for adding taint",
        ),
        pytest.param(
            ["foo=abc:invalid_effect"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: invalid_effect, unsupported taint effect",
            id="TestParseTaints: invalid spec effect for adding taint",
        ),
        pytest.param(
            ["foo:invalid_effect-"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: invalid_effect, unsupported taint effect",
            id="TestParseTaints: invalid spec effect for deleting taint",
        ),
        pytest.param(
            ["nospecialchars^@=banana:NoSchedule"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: nospecialchars^@=banana:NoSchedule, {NAME_RULE}",
            id="TestTaint: invalid taint key",
        ),
        pytest.param(
            ["foo=bar:NoExcute"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: NoExcute, unsupported taint effect",
            id="TestTaint: invalid taint effect",
        ),
        pytest.param(
            ["foo=bar:NoExcute", "foo=barz:NoExcute"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: NoExcute, unsupported taint effect",
            id="TestTaint: duplicated, but the effect is looked at first",
        ),
        pytest.param(
            ["foo=bar:NoExecute", "foo=barz:NoExecute"],
            Refusal.DUPLICATE,
            "duplicated taints with the same key and effect: {foo barz NoExecute <nil>}",
            id="10 two additions with the same key and effect",
        ),
        pytest.param(
            ["foo:NoExecute", "foo:NoExecute"],
            Refusal.DUPLICATE,
            "duplicated taints with the same key and effect: {foo  NoExecute <nil>}",
            id="10 the same without value",
        ),
        pytest.param(
            ["foo=bar-"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: foo=bar, {NAME_RULE}",
            id="10 without a colon the whole text is the key, in removals too",
        ),
        pytest.param(
            ["foo=bar="],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: foo=bar=, {NAME_RULE}",
            id="10 without a colon the number of = does not matter",
        ),
        pytest.param(
            ["=value:NoSchedule"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: =value:NoSchedule, name part must be non-empty; {NAME_RULE}",
            id="10 no key",
        ),
        pytest.param(
            ["key=@:NoSchedule"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: key=@:NoSchedule, {VALUE_RULE}",
            id="10 illegal value",
        ),
        pytest.param(
            ["@=@:NoSchedule"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: @=@:NoSchedule, {VALUE_RULE}",
            id="parseTaint: value before key",
        ),
        pytest.param(
            ["@=@:Never"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: Never, unsupported taint effect",
            id="parseTaint: effect before value",
        ),
        pytest.param(
            ["key=@:NoSchedule-"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: key=@:NoSchedule, {VALUE_RULE}",
            id="10 illegal value of a removal",
        ),
        pytest.param(
            ["key:"], Refusal.INVALID_EFFECT, "invalid taint effect: , unsupported taint effect", id="10 empty effect"
        ),
        pytest.param(
            ["key=value:"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: , unsupported taint effect",
            id="10 value and empty effect",
        ),
        pytest.param(
            ["key:-"], Refusal.INVALID_EFFECT, "invalid taint effect: , unsupported taint effect", id="10 removal of it"
        ),
        pytest.param(
            ["key:noexecute"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: noexecute, unsupported taint effect",
            id="10 effects are case sensitive",
        ),
        pytest.param(
            ["-"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: , name part must be non-empty; {NAME_RULE}",
            id="10 a removal of nothing",
        ),
        pytest.param(
            ["key--"], Refusal.INVALID_SPEC, f"invalid taint spec: key-, {NAME_RULE}", id="10 only one - is cut off"
        ),
        pytest.param(
            ["key=v-:NoExecute"],
            Refusal.INVALID_SPEC,
            f"invalid taint spec: key=v-:NoExecute, {VALUE_RULE}",
            id="2.4 a value ends in a letter or digit",
        ),
        pytest.param(
            ["key=" + "v" * 64 + ":NoExecute"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: key=" + "v" * 64 + ":NoExecute, must be no more than 63 bytes",
            id="2.4 value of 64 characters",
        ),
        pytest.param(
            ["k" * 64 + ":NoExecute"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: " + "k" * 64 + ":NoExecute, name part must be no more than 63 bytes",
            id="2.4 key of 64 characters",
        ),
        pytest.param(
            ["/k:NoExecute"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: /k:NoExecute, prefix part must be non-empty",
            id="2.4 empty prefix",
        ),
        pytest.param(
            ["good:NoExecute", "bad", "worse:Never"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: bad",
            id="parseTaints: the first problem is reported",
        ),
    ],
)
def test_what_is_refused_in_the_words_of_kubectl(specs: list[str], kind: Refusal, message: str) -> None:
    with pytest.raises(KubectlError) as caught:
        parse_taints(specs)
    assert caught.value.kind is kind
    assert str(caught.value) == message


def test_a_taint_without_effect_is_read_for_removals() -> None:
    assert parse_taint("dedicated") == Taint("dedicated")


@pytest.mark.parametrize(
    ("specs", "pairs"),
    [
        pytest.param(["foo=:NoExecute", "foo=:NoExecute-"], "foo=NoExecute", id="10 equal effects"),
        pytest.param(["foo:NoExecute", "foo-"], "foo=", id="10 the removal has no effect"),
        pytest.param(
            ["a:NoExecute", "b:NoSchedule", "b-", "a:NoExecute-"],
            "a=NoExecute, b=",
            id="Validate: all pairs, in the order of the additions",
        ),
    ],
)
def test_a_taint_cannot_be_added_and_removed(specs: list[str], pairs: str) -> None:
    with pytest.raises(KubectlError) as caught:
        check_conflicts(parse_taints(specs))
    assert caught.value.kind is Refusal.CONFLICT
    assert str(caught.value) == f"can not both modify and remove the following taint(s) in the same command: {pairs}"


def test_one_command_may_also_remove_the_keys_other_effects() -> None:
    changes = parse_taints(["a:NoExecute", "a:NoSchedule-"])
    check_conflicts(changes)
    assert changes.remove == (Taint("a", "", NO_SCHEDULE),)
