"""semantics.md 2.4; cases of kube_test.go and decimal_int_test.go in apimachinery/pkg/api/validate/content."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.validation import (
    decimal_integer_errors,
    label_key_errors,
    label_value_errors,
    subdomain_errors,
)

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PREFIX_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY_RULE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
INTEGER_RULE = "must be a valid decimal integer in canonical form"


def named(texts: list[str], source: str) -> list[object]:
    return [pytest.param(text, id=f"{source} {text[:30]!r} {len(text)}") for text in texts]


@pytest.mark.parametrize(
    "key",
    named(
        [
            "simple",
            "now-with-dashes",
            "1-starts-with-num",
            "1234",
            "simple/simple",
            "now-with-dashes/simple",
            "now-with-dashes/now-with-dashes",
            "now.with.dots/simple",
            "now-with.dashes-and.dots/simple",
            "1-num.2-num/3-num",
            "1234/5678",
            "1.2.3.4/5678",
            "Uppercase_Is_OK_123",
            "example.com/Uppercase_Is_OK_123",
            "requests.storage-foo",
            "a" * 63,
            "a" * 253 + "/" + "b" * 63,
        ],
        "TestIsLabelKey",
    )
    + named(["a", "a..b", "a__b", "a-_.b", "x/y", "node.kubernetes.io/not-ready"], "2.4"),
)
def test_label_keys(key: str) -> None:
    assert label_key_errors(key) == ()


@pytest.mark.parametrize(
    "key",
    named(
        [
            "nospecialchars%^=@",
            "cantendwithadash-",
            "-cantstartwithadash-",
            "only/one/slash",
            "Example.com/abc",
            "example_com/abc",
            "example.com/",
            "/simple",
            "a" * 64,
            "a" * 254 + "/abc",
        ],
        "TestIsLabelKey",
    )
    + named(
        [
            "",
            " ",
            "a b",
            "a\n",
            "\na",
            ".a",
            "a.",
            "_a",
            "a_",
            "é",
            "a:b",
            "a=b",
            "/",
            "//",
            "a//b",
            "-a/b",
            "a-/b",
            "a..b/c",
            ".a/b",
        ],
        "2.4",
    ),
)
def test_other_texts_are_no_label_keys(key: str) -> None:
    assert label_key_errors(key) != ()


@pytest.mark.parametrize(
    ("key", "messages"),
    [
        pytest.param("", ("name part must be non-empty", NAME_RULE), id="kube.go IsLabelKey empty: two rules"),
        pytest.param("/a", ("prefix part must be non-empty",), id="kube.go IsLabelKey empty prefix"),
        pytest.param("a/", ("name part must be non-empty", NAME_RULE), id="kube.go IsLabelKey empty name"),
        pytest.param(
            "/", ("prefix part must be non-empty", "name part must be non-empty", NAME_RULE), id="kube.go only a slash"
        ),
        pytest.param("A/b", (PREFIX_RULE,), id="kube.go IsLabelKey prefix in capitals"),
        pytest.param("a" * 64, ("name part must be no more than 63 bytes",), id="kube.go long name"),
        pytest.param(
            "-" * 64, ("name part must be no more than 63 bytes", NAME_RULE), id="kube.go long name of wrong letters"
        ),
        pytest.param("a" * 254 + "/b", ("prefix part must be no more than 253 bytes",), id="kube.go long prefix"),
        pytest.param(
            "é" * 32,
            ("name part must be no more than 63 bytes", NAME_RULE),
            id="kube.go bytes are counted, not letters",
        ),
        pytest.param(
            "a/b/c",
            (KEY_RULE,),
            id="kube.go two slashes: only this rule",
        ),
    ],
)
def test_every_broken_rule_of_a_key_is_reported(key: str, messages: tuple[str, ...]) -> None:
    assert label_key_errors(key) == messages


@pytest.mark.parametrize(
    "value",
    named(
        ["simple", "now-with-dashes", "1-starts-with-num", "end-with-num-1", "1234", "a" * 63, ""], "TestIsLabelValue"
    )
    + named(["A", "a.b_c-d", "1", "true"], "2.4"),
)
def test_label_values(value: str) -> None:
    assert label_value_errors(value) == ()


@pytest.mark.parametrize(
    "value",
    named(
        [
            "nospecialchars%^=@",
            "Tama-nui-te-rā.is.Māori.sun",
            "\\backslashes\\are\\bad",
            "-starts-with-dash",
            "ends-with-dash-",
            ".starts.with.dot",
            "ends.with.dot.",
            "a" * 64,
        ],
        "TestIsLabelValue",
    )
    + named(["-5", "a/b", " ", "a\n", "_", "\u0667"], "2.4"),
)
def test_other_texts_are_no_label_values(value: str) -> None:
    assert label_value_errors(value) != ()


def test_every_broken_rule_of_a_value_is_reported() -> None:
    assert label_value_errors("a" * 63 + "-") == ("must be no more than 63 bytes", VALUE_RULE)


@pytest.mark.parametrize(
    ("text", "is_legal"),
    [
        pytest.param("example.com", True, id="dns.go IsDNS1123Subdomain"),
        pytest.param("a" * 253, True, id="dns.go 253 bytes in one label"),
        pytest.param("a" * 254, False, id="dns.go 254 bytes"),
        pytest.param("Example.com", False, id="dns.go capitals"),
        pytest.param("a..b", False, id="dns.go empty label"),
        pytest.param("", False, id="dns.go empty"),
        pytest.param("a.b\n", False, id="dns.go line end"),
    ],
)
def test_subdomains(text: str, *, is_legal: bool) -> None:
    assert (subdomain_errors(text) == ()) is is_legal


CANONICAL = [
    "0", "1", "2", "5", "9", "-5", "-1", "-9", "100", "234", "345", "456", "567", "678", "789", "890", "999", "123",
    "-456", "-100", "-987", "9223372036854775807", "-9223372036854775808", "12345678901234567890", "999999999999",
]  # fmt: skip
NOT_CANONICAL = [
    "-0", "00", "000", "0000000", "01", "02", "09", "0123", "0700", "0950", "00123", "-01", "-0123", "-00", "+123",
    "+5", "+0", "-", "+", " ", "   ", " 123", "123 ", "12 3", " 123 ", "12.3", "0.0", "-12.5", "123.", ".123", "abc",
    "12a3", "a123", "123a", "ABC", "12A3", "0x123", "0X123", "0o777", "0b101", "1e5", "1e-5", "1E5", "1_000", "1,000",
    "1.000", "1'000", "--123", "++123", "+-123", "-+123", "123-", "12-3", "123+", "12+3", "\t123", "123\t", "123\n",
    "123\r", "123\x00", "123\v", "123\f", "(123)", "[123]", "{123}", "$123", "123%", "#123", "@123", "&123", "*123",
    "12/3", "12\\3", "12|3", "12;3", "12:3", "12?3", "12!3", "~123", "`123", "'123'", '"123"', "\u2212123",
    "\uff11\uff12\uff13", "\u0661\u0662\u0663", "\u4e00\u4e8c\u4e09", "123\u2074", "123\u2084",
]  # fmt: skip


@pytest.mark.parametrize("text", named(CANONICAL, "TestIsDecimalInteger"))
def test_canonical_integers(text: str) -> None:
    assert decimal_integer_errors(text) == ()


@pytest.mark.parametrize("text", named(NOT_CANONICAL, "TestIsDecimalInteger"))
def test_other_texts_are_no_canonical_integers(text: str) -> None:
    assert decimal_integer_errors(text) == (INTEGER_RULE,)


def test_an_empty_text_has_its_own_error() -> None:
    """decimal_int.go: the message says non-empty"""
    assert decimal_integer_errors("") == ("must be non-empty",)
