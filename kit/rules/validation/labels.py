"""Texts that the API server accepts as label keys, label values and canonical integers (semantics.md 2.4).

Source: `staging/src/k8s.io/apimachinery/pkg/api/validate/content/`, files `kube.go`, `dns.go`, `decimal_int.go` and
`errors.go`. Messages keep Kubernetes' wording, for which people search. Lengths count bytes of UTF-8.
"""

import re
from typing import Final

from evictstream.kit.rules.go_texts import quoted
from evictstream.models.kubernetes.integers import is_canonical

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_NAME_PATTERN: Final = re.compile(_NAME)
_VALUE_PATTERN: Final = re.compile(_VALUE)
_SUBDOMAIN_PATTERN: Final = re.compile(_SUBDOMAIN)

_LONGEST_NAME_BYTES: Final = 63
_LONGEST_VALUE_BYTES: Final = 63
_LONGEST_SUBDOMAIN_BYTES: Final = 253

_EMPTY: Final = "must be non-empty"
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_KEY_RULE: Final = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_INTEGER_RULE: Final = "must be a valid decimal integer in canonical form"

_SIGN_AND_DIGITS: Final = re.compile(r"([+-]?)([0-9]*)", re.ASCII)
_BEYOND_64_BIT: Final = 2**64
_MOST_DIGITS: Final = 20  # of a 64-bit number; `int` would take long for texts without a limit
_HIGHEST_INT64: Final = 2**63 - 1


def label_key_errors(text: str) -> tuple[str, ...]:
    """List what keeps a text from being a label key ("qualified name"): optional DNS subdomain, `/`, name."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (_KEY_RULE,)
    errors = []
    if slash:
        errors += [f"prefix part {message}" for message in ((_EMPTY,) if not prefix else subdomain_errors(prefix))]
    if not name:
        errors.append(f"name part {_EMPTY}")
    elif _bytes(name) > _LONGEST_NAME_BYTES:
        errors.append(f"name part {_too_long(_LONGEST_NAME_BYTES)}")
    if not _NAME_PATTERN.fullmatch(name):
        errors.append(f"name part {_NAME_RULE}")
    return tuple(errors)


def label_value_errors(text: str) -> tuple[str, ...]:
    """List what keeps a text from being a label value; the empty text is one."""
    errors = []
    if _bytes(text) > _LONGEST_VALUE_BYTES:
        errors.append(_too_long(_LONGEST_VALUE_BYTES))
    if not _VALUE_PATTERN.fullmatch(text):
        errors.append(_VALUE_RULE)
    return tuple(errors)


def subdomain_errors(text: str) -> tuple[str, ...]:
    """List what keeps a text from being a DNS subdomain in lower case, the prefix of a label key."""
    errors = []
    if _bytes(text) > _LONGEST_SUBDOMAIN_BYTES:
        errors.append(_too_long(_LONGEST_SUBDOMAIN_BYTES))
    if not _SUBDOMAIN_PATTERN.fullmatch(text):
        errors.append(_SUBDOMAIN_RULE)
    return tuple(errors)


def decimal_integer_errors(text: str) -> tuple[str, ...]:
    """List what keeps a text from being a canonical decimal integer; its length is not limited here."""
    if not text:
        return (_EMPTY,)
    return () if is_canonical(text) else (_INTEGER_RULE,)


def int64_errors(text: str) -> tuple[str, ...]:
    """List what keeps a text from being a canonical integer within signed 64 bit: the rule, then Go's own words.

    A text that is no number breaks both. `007`, which Go reads, breaks only the first, a number that is too large only
    the second.
    """
    return (*decimal_integer_errors(text), *_parse_int_errors(text))


def _parse_int_errors(text: str) -> tuple[str, ...]:
    """Return the error of Go's `strconv.ParseInt(text, 10, 64)`, which stops reading once the number exceeds 64 bit."""
    match = _SIGN_AND_DIGITS.match(text)
    sign, digits = match.groups() if match else ("", "")
    digits_that_count = digits.lstrip("0")
    number = int(digits_that_count or "0") if len(digits_that_count) <= _MOST_DIGITS else _BEYOND_64_BIT
    if number < _BEYOND_64_BIT and (not digits or len(sign + digits) < len(text)):
        problem = "invalid syntax"
    elif number > _HIGHEST_INT64 + (sign == "-"):
        problem = "value out of range"
    else:
        return ()
    return (f"strconv.ParseInt: parsing {quoted(text)}: {problem}",)


def _too_long(longest_bytes: int) -> str:
    return f"must be no more than {longest_bytes} bytes"


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
