"""semantics.md 10; staging/src/k8s.io/kubectl/pkg/drain/cordon_test.go and cmd/drain/drain.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.kubectl import CordonWord, cordon, uncordon


@pytest.mark.parametrize(
    ("before", "word", "is_changed"),
    [
        pytest.param(False, CordonWord.CORDONED, True, id="TestUpdateIfRequired: update required - cordon"),
        pytest.param(True, CordonWord.ALREADY_CORDONED, False, id="TestUpdateIfRequired: no change required"),
    ],
)
def test_cordon(word: CordonWord, *, before: bool, is_changed: bool) -> None:
    found = cordon(unschedulable=before)
    assert (found.word, found.unschedulable, found.is_changed) == (word, True, is_changed)


@pytest.mark.parametrize(
    ("before", "word", "is_changed"),
    [
        pytest.param(True, CordonWord.UNCORDONED, True, id="TestUpdateIfRequired: update required - uncordon"),
        pytest.param(False, CordonWord.ALREADY_UNCORDONED, False, id="TestUpdateIfRequired: nothing to uncordon"),
    ],
)
def test_uncordon(word: CordonWord, *, before: bool, is_changed: bool) -> None:
    found = uncordon(unschedulable=before)
    assert (found.word, found.unschedulable, found.is_changed) == (word, False, is_changed)


def test_the_words_of_kubectl() -> None:
    assert [str(word) for word in CordonWord] == ["cordoned", "already cordoned", "uncordoned", "already uncordoned"]
