"""Mutations of feeds and of what they say: listings, epochs, signs of life; and of what executors accept."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

LISTINGS = "tests/streams/partition/test_listings.py"
CLUSTERS = "tests/streams/partition/test_clusters.py"
MESSAGES = "tests/streams/partition/test_messages.py"
SIGNS = "tests/streams/worker/test_cluster_signs.py"
METRICS = "tests/streams/worker/test_metrics.py"
BESIDE = "tests/streams/feed/test_listing_beside_watch.py"
FEED = "tests/streams/feed/test_cluster_feed.py"
ABSURD = "tests/streams/feed/test_absurd_objects.py"
FLEET = "tests/streams/feed/test_fleet.py"
PAGES = "tests/streams/feed/test_list_reader.py"
PROFILES = "tests/streams/feed/test_cluster_profile.py"
PROGRESS = "tests/streams/feed/test_progress.py"
STALE = "tests/streams/feed/test_stale_watches.py"
FEED_OUTAGES = "tests/streams/feed/test_feed_outages.py"
CREDENTIALS = "tests/streams/kubernetes/test_credentials_that_change.py"
EXECUTING = "tests/models/eviction/test_executing.py"
ELSEWHERE = "tests/guarantees/test_input_faults.py"

OF_FEEDS = (
    Mutation(
        "keep what a listing does not hold",
        (
            Change(
                product.SIGNAL_STEPS,
                "SignalSteps._remove_unlisted",
                "listed.covers(aggregate.name)",
                "False",
            ),
        ),
        (f"{LISTINGS}::test_pods_that_a_listing_does_not_hold_are_gone",),
    ),
    Mutation(
        "let a listing speak for nodes outside of its range",
        (Change(product.SIGNALS, "Listed.covers", "self.after < node", "True"),),
        (f"{LISTINGS}::test_pods_that_a_listing_does_not_hold_are_gone",),
    ),
    Mutation(
        "let a part of a node's listing speak for all of its pods",
        (Change(product.SIGNALS, "Listed.covers_uid", "self.uid_after < uid", "True"),),
        (f"{LISTINGS}::test_pods_that_a_listing_does_not_hold_are_gone",),
    ),
    Mutation(
        "fire nodes in the middle of a listing",
        (Change(product.EFFECTS, "StepEffects.put_aside", "self._timers.hold(aggregate.timer_key)", "pass"),),
        (f"{LISTINGS}::test_a_large_listing_is_written_whole",),
    ),
    Mutation(
        "let another cluster speak under a name",
        (Change(product.CLUSTER, "admit", "signal.cluster_uid in ('', state.uid)", "True"),),
        (f"{CLUSTERS}::test_another_cluster_with_this_name_does_not_count",),
    ),
    Mutation(
        "send commands without the cluster's UID",
        (
            Change(
                product.MESSAGES,
                "MessageWriter.put",
                "msgspec.structs.replace(...) if cluster_uid else decided",
                "decided",
            ),
        ),
        (f"{MESSAGES}::test_commands_name_the_cluster_that_the_feed_named",),
    ),
    Mutation(
        "count an attempt that was answered as unanswered",
        (
            Change(
                product.LIFECYCLE,
                "report",
                "unanswered_since_us=None",
                "unanswered_since_us=eviction.unanswered_since_us",
            ),
        ),
        (SIGNS,),
    ),
    Mutation(
        "count what is unanswered from its newest attempt on",
        (Change(product.LIFECYCLE, "issue", "eviction.unanswered_since_us is None", "True"),),
        (SIGNS,),
    ),
    Mutation(
        "take an eviction that was answered for one that is done",
        (
            Change(
                product.ISSUED_EVICTIONS,
                "IssuedEvictions.note",
                "eviction.state in OUTSTANDING",
                "eviction.unanswered_since_us is not None",
            ),
        ),
        (f"{METRICS}::test_an_issued_eviction_is_owed_until_it_has_ended",),
    ),
    Mutation(
        "say nothing of evictions without an answer",
        (Change(product.CLUSTER_SIGNS, "cluster_signs", "age > UNANSWERED_LIMIT_SECONDS", "False"),),
        (SIGNS,),
    ),
    Mutation(
        "say nothing of a silent feed that holds evictions",
        (Change(product.CLUSTER_SIGNS, "cluster_signs", "view.silent_since_us.items()", "()"),),
        (SIGNS,),
    ),
    Mutation(
        "log a sign at each look",
        (Change(product.CLUSTER_SIGNS, "ClusterSigns.look", "place not in self.shown", "True"),),
        (SIGNS,),
    ),
    Mutation(
        "take in records of an earlier epoch",
        (Change(product.EVICTION_PARTITION, "EvictionPartition._admit", "event.epoch < cluster.state.epoch", "False"),),
        (f"{LISTINGS}::test_records_of_an_earlier_epoch_are_stale",),
    ),
    Mutation(
        "leave the eviction of a pod open that is bound elsewhere under its name",
        (Change(product.EVICTION_PARTITION, "EvictionPartition._apply_pod", "other is not None and ...", "False"),),
        (
            f"{ELSEWHERE}::test_a_pod_replaced_on_another_node_ends_the_old_eviction",
            "tests/streams/partition/test_replaced_elsewhere.py",
        ),
    ),
    Mutation(
        "take in edits of an earlier epoch by the fast path",
        (Change(product.FAST_PATH, "FastPath.apply", "pod_record.epoch < state.epoch", "False"),),
        (f"{LISTINGS}::test_edits_of_an_earlier_epoch_are_stale",),
    ),
    Mutation(
        "hold a repeat back for as long as an executor says so",
        (Change(product.RESULT_STEPS, "apply_result", "min(next_attempt_us, ...)", "next_attempt_us"),),
        (f"{EXECUTING}::test_accepted_holds_the_repeat_back_while_it_is_repeated",),
    ),
    Mutation(
        "list without saying what there is",
        (Change(product.LISTING, "KindListing.run", "self._writer.write_listed(...)", "None"),),
        (f"{FEED}::test_what_vanished_while_the_feed_was_away",),
    ),
    Mutation(
        "list once and never again",
        (Change(product.RELISTING, "Relisting.begin_if_due", "self._clock() < self._due_at", "True"),),
        ("tests/streams/feed/test_relisting.py::test_it_is_listed_again_within_the_interval",),
    ),
    Mutation(
        "let a listing write what is older than the watch has shown",
        (Change(product.WRITE_ORDER, "WriteOrder.of_listing", "self._watched.get(uid, -1) < version", "True"),),
        (
            "tests/streams/feed/test_write_order.py::test_a_listing_writes_nothing_that_the_watch_has_written",
            f"{BESIDE}::test_a_slow_listing_holds_back_neither_watch_nor_heartbeats",
        ),
    ),
    Mutation(
        "beat without a proof",
        (
            Change(product.CLUSTER_FEED, "ClusterFeed._beat", "self.is_proven and now >= beat_at", "now >= beat_at"),
            Change(product.CLUSTER_FEED, "ClusterFeed._may_beat", "self._are_proven(time.monotonic())", "True"),
        ),
        (f"{FEED}::test_a_quiet_watch_that_cannot_be_opened_again_stops_heartbeats",),
    ),
    Mutation(
        "beat though the proof is too old once the API server has answered",
        (
            Change(
                product.CLUSTER_FEED,
                "ClusterFeed._beat",
                "is_due and self._may_beat()",
                "is_due",
            ),
        ),
        (f"{FEED}::test_no_heartbeat_follows_a_probe_that_outlasts_its_proof",),
    ),
    Mutation(
        "take a watch that is open for one that shows what happens",
        (Change(product.PROGRESS, "Progress._settle", "self._answers[0][1] <= self.version", "True"),),
        (f"{STALE}::test_a_watch_that_stands_still_proves_nothing", f"{PROGRESS}"),
    ),
    Mutation(
        "stay with a watch that shows nothing",
        (Change(product.KIND_FEED, "KindFeed.run", "self.progress.is_behind(time.monotonic())", "False"),),
        (f"{STALE}::test_a_watch_that_stands_still_is_listed_again",),
    ),
    Mutation(
        "prove beside a line that is outstanding",
        (
            Change(
                product.PROGRESS,
                "Progress.proven_at",
                "self._is_outstanding or self._stands_still or self.listed_at_us is None",
                "self.listed_at_us is None",
            ),
        ),
        (f"{PROGRESS}::test_nothing_is_proven_while_a_line_is_outstanding",),
    ),
    Mutation(
        "stand before a line that cannot be read",
        (Change(product.KIND_FEED, "KindFeed._pass_over", "not self.progress.is_outstanding", "True"),),
        (f"{ABSURD}::test_a_watch_passes_over_what_it_cannot_read_twice",),
    ),
    Mutation(
        "give up on an object that is too deep",
        (
            Change(product.UNREAD_OBJECTS, "read_anyway", "BROKEN", "()"),
            Change(product.UNREAD_OBJECTS, "read_anyway", "shallow(...)", "text"),
        ),
        (f"{ABSURD}::test_objects_of_any_depth_are_fed",),
    ),
    Mutation(
        "let what cannot be read end as vanished",
        (Change(product.LISTING, "KindListing._take_item", "(unread.node, unread.uid)", "('', '')"),),
        (f"{ABSURD}::test_a_listed_object_that_cannot_be_read_stays_known",),
    ),
    Mutation(
        "ask for pages that are too large again as they are",
        (Change(product.LIST_READER, "ListReader._is_too_much", "self._bytes > WHOLE_BYTES", "False"),),
        (f"{PAGES}::test_pages_that_are_too_large_are_halved",),
    ),
    Mutation(
        "begin a listing again where one page is refused",
        (Change(product.LISTING, "KindListing._page", "is_too_late(error)", "True"),),
        (f"{STALE}::test_a_refused_page_is_asked_for_again",),
    ),
    Mutation(
        "go over to another cluster because its versions are lower",
        (
            Change(
                product.CLUSTER_FEED,
                "ClusterFeed._next_state",
                "self._new_epoch and (is_back or not self.has_fed)",
                "is_back or self._new_epoch",
            ),
        ),
        (f"{FLEET}::test_another_cluster_at_the_address_ends_the_feeding",),
    ),
    Mutation(
        "let a cluster that cannot be fed end the others",
        (Change(product.FLEET, "_check", "all(...)", "any(feed.refusal is not None for feed in feeds)"),),
        (f"{FLEET}::test_a_cluster_that_cannot_be_fed_costs_no_other",),
    ),
    Mutation(
        "go on in an epoch whose versions went back",
        (Change(product.CLUSTER_FEED, "ClusterFeed._next_state", "version < state.resource_version", "False"),),
        (f"{FEED}::test_versions_that_went_back_while_the_feed_was_away",),
    ),
    Mutation(
        "forget how far the watches came when a session ends",
        (
            Change(product.CLUSTER_FEED, "ClusterFeed._feed", "self._state = self._reached()", "pass"),
            Change(product.CLUSTER_FEED, "ClusterFeed._check_epoch", "self._keep(state)", "pass"),
        ),
        (f"{FEED}::test_versions_that_went_back_but_not_behind_what_was_kept",),
    ),
    Mutation(
        "lead again in the epoch of before",
        (
            Change(
                product.CLUSTER_FEED,
                "ClusterFeed._feed_safely",
                "read_state(self._settings, self.cluster)",
                "self._state",
            ),
        ),
        (f"{FEED}::test_a_feed_that_leads_again_keeps_the_newest_epoch",),
    ),
    Mutation(
        "let a feed write that stood still before Kafka has taken its commit",
        (Change(product.FEED_LEASE, "FeedLease._turn", "commits.is_in_doubt(now)", "False"),),
        ("tests/streams/feed/test_feed_lease.py::test_one_that_stood_still_writes_after_its_next_commit",),
    ),
    Mutation(
        "hold the lease although the group does not answer",
        (Change(product.FEED_LEASE, "FeedLease._hold", "membership.confirmed_at", "time.monotonic()"),),
        (f"{FEED_OUTAGES}::test_a_feed_that_its_group_does_not_confirm_writes_nothing",),
    ),
    Mutation(
        "take an answer that waited through a freeze for a new one",
        (
            Change(
                product.GROUP_MEMBERSHIP,
                "Membership.look",
                "max(self.confirmed_at, heartbeat.last_send)",
                "max(self.confirmed_at, heartbeat.last_receive)",
            ),
        ),
        ("tests/streams/broker/test_group_membership.py::test_a_heartbeat_confirms_what_it_asked_when_it_was_sent",),
    ),
    Mutation(
        "take what was written last for the newest epoch",
        (Change(product.FEED_STATES, "_newer", "found is None or state.epoch >= found.epoch", "True"),),
        ("tests/streams/broker/test_feed_states.py::test_the_highest_epoch_counts",),
    ),
    Mutation(
        "let labels of a profile win over those of flags",
        (
            Change(
                product.CLUSTER_PROFILE,
                "FollowedProfile.told",
                "{**self._labels, **dict(more[:room])}",
                "{**self._labels, **known.labels}",
            ),
        ),
        (PROFILES,),
    ),
    Mutation(
        "let a profile that cannot be read take its labels away",
        (
            Change(
                product.CLUSTER_PROFILE,
                "FollowedProfile.fail",
                "reason != self.trouble",
                "setattr(self, 'known', None) or $0",
            ),
        ),
        (PROFILES,),
    ),
    Mutation(
        "read a profile of any size",
        (Change(product.PROFILE_READER, "_body", "len(body) > LARGEST_PROFILE_BYTES", "False"),),
        (PROFILES,),
    ),
    Mutation(
        "keep nothing of a profile for the next feed",
        (Change(product.CLUSTER_FEED, "ClusterFeed._keep", "self._profile.known", "None"),),
        ("tests/streams/feed/test_profile_in_heartbeats.py",),
    ),
    Mutation(
        "let what cannot be read about a cluster count as an error",
        (Change(product.FEED_STATES, "_newer", "DECODE_ERRORS", "()"),),
        ("tests/streams/broker/test_feed_states.py::test_what_cannot_be_read_does_not_count",),
    ),
    Mutation(
        "keep credentials that are refused",
        (Change(product.CONNECTION_TO_API, "Connection._opened", "exchange.status == UNAUTHORIZED", "False"),),
        (f"{CREDENTIALS}::test_a_token_that_is_replaced_is_read_anew",),
    ),
    Mutation(
        "keep an authority that vouches no more",
        (Change(product.CONNECTION_TO_API, "Connection._opened", "tls_error is None", "True"),),
        (f"{CREDENTIALS}::test_an_authority_that_is_replaced_is_read_anew",),
    ),
    Mutation(
        "write without the lease",
        (
            Change(product.CLUSTER_FEED, "ClusterFeed.run", "self._lease.is_held", "True"),
            Change(product.CLUSTER_FEED, "ClusterFeed._identify", "self._lease.is_held", "True"),
            Change(product.CLUSTER_FEED, "ClusterFeed._beat", "self._lease.is_held", "True"),
            Change(product.CLUSTER_FEED, "ClusterFeed._may_beat", "self._lease.is_held", "True"),
            Change(product.FEED_LEASE, "FeedLease.is_sure", "time.monotonic() < self._sure_until", "True"),
        ),
        (f"{FEED}::test_a_second_feed_stands_by_until_the_first_one_ends",),
    ),
    Mutation(
        "take half a line for a line",
        (
            Change(
                product.EXCHANGE,
                "Exchange._lines",
                "self.pieces()",
                "(*self.pieces(), b'\\n')",
            ),
        ),
        (f"{FEED}::test_trouble_of_the_api_server_loses_nothing",),
    ),
)
