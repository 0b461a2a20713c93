"""What proves that nothing was missed: versions that were shown beside those that etcd said."""

from __future__ import annotations

import math

from evictstream.streams.feed.progress import MOST_ANSWERS, PROOF_SECONDS, Progress


def listed(version: int = 100) -> Progress:
    progress = Progress()
    progress.etcd_said(100, 1.0)
    progress.list_complete(version, began_us=7)
    return progress


def test_nothing_is_proven_before_a_listing() -> None:
    progress = Progress()
    progress.etcd_said(100, 1.0)
    progress.show(200)
    assert progress.proven_at == -math.inf


def test_a_listing_proves_what_etcd_said_before() -> None:
    assert listed().proven_at == 1.0
    assert listed(99).proven_at == -math.inf


def test_what_etcd_said_is_proven_when_it_is_shown() -> None:
    progress = listed()
    for at, version in ((10.0, 110), (20.0, 120), (30.0, 130)):
        progress.etcd_said(version, at)
    assert progress.proven_at == 1.0
    progress.show(125)
    assert progress.proven_at == 20.0
    progress.show(90)  # of a cache that lags behind the listing
    progress.etcd_said(125, 40.0)
    assert progress.proven_at == 20.0
    progress.show(130)
    assert progress.proven_at == 40.0


def test_where_nothing_happens_etcd_alone_proves() -> None:
    progress = listed()
    progress.etcd_said(100, 10.0)
    assert progress.proven_at == 10.0


def test_a_watch_that_stood_still_has_to_move_first() -> None:
    progress = listed()
    progress.stand_still()
    progress.list_complete(200, began_us=8)
    progress.show(200)
    progress.etcd_said(200, 10.0)
    assert progress.proven_at == -math.inf
    progress.show(201)
    assert progress.proven_at == 10.0


def test_nothing_is_proven_while_a_line_is_outstanding() -> None:
    progress = listed()
    progress.miss()
    progress.etcd_said(100, 10.0)
    assert progress.proven_at == -math.inf
    progress.show(100)
    assert progress.proven_at == 10.0


def test_a_watch_that_does_not_reach_etcd_is_behind() -> None:
    progress = listed()
    progress.etcd_said(100, 10.0)
    assert not progress.is_behind(1_000.0)
    progress.etcd_said(101, 20.0)
    assert not progress.is_behind(20.0 + PROOF_SECONDS)
    assert progress.is_behind(20.1 + PROOF_SECONDS)


def test_answers_beyond_the_limit_prove_nothing() -> None:
    progress = listed()
    for number in range(MOST_ANSWERS + 1):
        progress.etcd_said(200 + number, 10.0 + number)
    progress.show(200)
    assert progress.proven_at == 1.0
    progress.show(201)
    assert progress.proven_at == 11.0
