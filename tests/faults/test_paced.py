"""What `paced.py` says of runs in which a promise is broken."""

from __future__ import annotations

import pytest

from tests.faults.paced import BURST, RATE, Issued, Meddler, Run

PODS = 2 * BURST
DEADLINES = {f"u{number}": 0.0 if number < RATE else 0.5 for number in range(PODS)}


def paced(number: int) -> float:
    """When the n-th eviction goes: the first ones at once."""
    return 0.5 + max(0, number + 1 - BURST) / RATE


def run(*, issued: list[Issued] | None = None, twice: int = 0, left: int = 0) -> Run:
    issued = issued or [Issued(paced(number), *one, is_first=True) for number, one in enumerate(DEADLINES.items())]
    return Run(issued=issued, deadlines=DEADLINES, held=set(), twice=twice, left=left, kills=0, changes=0)


def changed(number: int, *, at: float | None = None, deadline: float = 0.5) -> list[Issued]:
    """One eviction of the run differs."""
    issued = list(run().issued)
    one = issued[number]
    issued[number] = one._replace(at=one.at if at is None else at, deadline=deadline)
    return sorted(issued)


def test_what_keeps_its_rate_breaks_no_promise() -> None:
    assert run().problems() == []


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        pytest.param(run(issued=changed(BURST, at=0.5)), "the rate was exceeded by 1.00", id="one too soon"),
        pytest.param(run(issued=changed(7, at=paced(PODS), deadline=0.0)), "1 waited for longer", id="one passed over"),
        pytest.param(run(issued=changed(7)), "deadlines have moved", id="a deadline moved"),
        pytest.param(
            run(issued=[one._replace(at=one.at * 3) for one in run().issued]), "it took 18.0 s", id="a slower rate"
        ),
        pytest.param(run(twice=1), "1 pods were deleted twice", id="deleted twice"),
        pytest.param(run(left=2), "2 pods are left", id="left"),
    ],
)
def test_a_broken_promise_is_a_problem(broken: Run, problem: str) -> None:
    assert any(one.startswith(problem) for one in broken.problems()), broken.problems()


def test_a_change_that_fails_fails_the_run() -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("refused")

    applied: list[object] = []
    meddler = Meddler(7, applied.append, refuse)
    meddler.start()
    with pytest.raises(RuntimeError, match="refused"):
        meddler.finish()
    assert meddler.changed == len(applied) == 2


def test_changes_are_counted_as_they_are_made() -> None:
    applied: list[object] = []
    deleted: list[str] = []
    meddler = Meddler(7, applied.append, deleted.append)
    meddler.start()
    assert meddler.finish() == 7
    assert (len(applied), deleted) == (5, ["meddler"] * 3)
