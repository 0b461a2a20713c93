/* The broker's side of one transactional id: the coordinator, and the leaders of the two logs.
 *
 * As Kafka 4.3 does it (TransactionCoordinator, ProducerAppendInfo, UnifiedLog). With KIP890 it is `transaction.version`
 * 2 and a client that asks for it, without it the protocol of EndTxn before version 5.
 */

mtype = { Empty, Ongoing, Prepare, Complete };  /* Kafka's names of its states */

typedef Coordinator {
    mtype state = Empty;
    bit commit;          /* how the last transaction ends, or has ended */
    byte epoch;          /* of the producer that may write */
    byte logs;           /* the set of logs that belong to the transaction */
    byte marker_epoch;
    byte unmarked;       /* the set of logs to which the marker has not been written yet */
    bit gives_up;        /* for the invariants: whether `mark` has begun it in order to abort */
};
Coordinator coordinator;

/* What stands in a log, folded up: what readers see, and what is above the last stable offset. */
typedef Log {
    byte epoch;          /* newest one of the producer that the leader has seen */
    byte end;            /* next offset, counted with LANDING */
    byte seen;           /* inputs whose rows or messages a `read_committed` reader sees */
    byte position;       /* newest positions that it sees: next input to read */
    byte number;         /* newest transaction that it sees */

    bit open;            /* whether there is something without a marker: */
    byte open_at;        /* its first offset */
    byte open_first;     /* number of its first transaction */
    byte open_newest;    /* and of its newest one */
    byte open_inputs;
    byte open_position;
    bit open_twice;      /* for the invariants: whether an input is twice among them */
    bit open_fenced;     /* for the invariants: whether a fenced owner has written some of them */
    bit hangs;           /* for the invariants: whether its marker was left out */
    bit hangs_committed; /* and whether it would have been a commit */
#ifdef BREAK_READ_COMMITTED
    byte written;        /* inputs of all rows, aborted ones too */
    byte written_position;
#endif
};
Log logs[2];

#if DEPOSED
/* The changelog as a leader shows it that was frozen and deposed, and does not know it yet. */
typedef Deposed { bit answers; bit was; byte position; byte number; byte end };
Deposed deposed;

inline forget_deposed() {
    deposed.answers = 0;
    deposed.position = 0;
    deposed.number = 0;
    deposed.end = 0
}

/* It learns within two seconds that it was deposed; a takeover that has failed begins later. */
inline read_old_rows() {
    position = deposed.position;
    number = deposed.number;
    read_to = deposed.end;
    printf("worker %d: reads the rows of a deposed leader up to offset %d: next input is %d\n", me, read_to, position);
    forget_deposed()
}
#endif

#define hanging(which) (logs[which].open && logs[which].hangs)

/* Requests that have left a client and have not arrived. One that arrives is carried out, whoever waits for it. */
typedef LateEndTxn { bit under_way; byte epoch; bit commit };
typedef LateProduce { bit under_way; byte epoch; byte inputs; byte position; byte number };
LateEndTxn late_end;
LateProduce late_produce[2];
#ifdef LATE_MARKERS
typedef LateMarker { bit under_way; byte epoch; bit commit };
LateMarker late_marker[2];
#endif

/* ------------------------------------------------------------------------------------------------------ coordinator */

inline begin_end(how) {
    coordinator.state = Prepare;
    coordinator.commit = how;
    coordinator.unmarked = coordinator.logs;
#ifdef KIP890
    coordinator.epoch++;   /* with each end: what comes late is told from what is new */
#endif
    assert(coordinator.epoch < 200);  /* the model itself is finite */
    coordinator.marker_epoch = coordinator.epoch
}

/* InitProducerId, or the time-out of a transaction. */
inline fence_and_abort() {
#ifndef KIP890
    coordinator.epoch++;
#endif
    begin_end(0)
}

/* EndTxn, by its three answers: it ends the transaction now, it has ended it before, or it is refused. */
#define ENDS_NOW(its_epoch) (coordinator.state == Ongoing && coordinator.epoch == (its_epoch))
#ifdef KIP890
#define ENDED_BEFORE(its_epoch, how) \
    ((coordinator.state == Prepare || coordinator.state == Complete) && \
     coordinator.epoch == (its_epoch) + 1 && coordinator.commit == (how))
#else
#define ENDED_BEFORE(its_epoch, how) \
    ((coordinator.state == Prepare || coordinator.state == Complete) && \
     coordinator.epoch == (its_epoch) && coordinator.commit == (how))
#endif

/* ------------------------------------------------------------------------------------------------------------- logs */

#ifdef KIP890
#define MARKER_REFUSED(which, its_epoch) \
    ((its_epoch) < logs[which].epoch || ((its_epoch) == logs[which].epoch && logs[which].open))
#else
#define MARKER_REFUSED(which, its_epoch) ((its_epoch) < logs[which].epoch)
#endif

/* What was open is committed: `read_committed` readers see it from now on. */
inline make_visible(which) {
    printf("log %d: shows inputs {%d} of transactions %d to %d\n", which,
           logs[which].open_inputs, logs[which].open_first, logs[which].open_newest);
    holds(not_twice, !logs[which].open_twice && (logs[which].seen & logs[which].open_inputs) == 0);
    holds(not_by_a_fenced_owner, !logs[which].open_fenced);
    logs[which].seen = logs[which].seen | logs[which].open_inputs;
    logs[which].number = logs[which].open_newest;
    if
    :: which == ROWS ->
       logs[which].position = logs[which].open_position;
       holds(positions_with_rows, logs[which].seen == PREFIX(logs[which].position))
    :: else
    fi
}

inline forget_open(which) {
    logs[which].open = 0;
    logs[which].open_at = 0;
    logs[which].open_first = 0;
    logs[which].open_newest = 0;
    logs[which].open_inputs = 0;
    logs[which].open_position = 0;
    logs[which].open_twice = 0;
    logs[which].open_fenced = 0;
    logs[which].hangs = 0;
    logs[which].hangs_committed = 0
}

inline accept_marker(which, its_epoch, how) {
    if
    :: MARKER_REFUSED(which, its_epoch)
    :: else ->
       if
       :: how -> printf("log %d: commit marker of epoch %d\n", which, its_epoch)
       :: else -> printf("log %d: abort marker of epoch %d\n", which, its_epoch)
       fi;
       logs[which].epoch = its_epoch;
#if LANDING
       logs[which].end++;
#endif
       if
       :: how && logs[which].open -> make_visible(which)
       :: else
       fi;
       forget_open(which)
    fi
}

inline write_marker(which) {
    coordinator.unmarked = coordinator.unmarked & ~ONLY(which);
#if OMISSIONS
    /* Not promised: the owner's next transaction, which takes the records along, is lost in turn; or a worker does not
     * come to the end of marking a committed transaction. */
    if
    :: hanging(which) && logs[which].hangs_committed && !coordinator.commit && !coordinator.gives_up -> excused = 1
    :: else
    fi;
#endif
    accept_marker(which, coordinator.marker_epoch, coordinator.commit)
}

#ifdef LATE_MARKERS
/* The answer is lost, and the coordinator asks again; one of the two requests comes late. */
inline write_marker_twice(which) {
    faults_left--;
    write_marker(which);
    late_marker[which].under_way = 1;
    late_marker[which].epoch = coordinator.marker_epoch;
    late_marker[which].commit = coordinator.commit
}
#endif

inline omit_marker(which) {
    omissions_left--;
    coordinator.unmarked = coordinator.unmarked & ~ONLY(which);
    printf("coordinator: leaves the marker of log %d out\n", which);
    /* Not promised: two transactions without a marker. One that lacks both of its markers is. */
    if
    :: logs[which].hangs -> excused = 1
    :: logs[1 - which].hangs && logs[which].open && logs[which].open_newest != logs[1 - which].open_newest -> excused = 1
    :: else
    fi;
    logs[which].hangs = logs[which].open;
    logs[which].hangs_committed = coordinator.commit
}

/* Produce. A leader asks the coordinator (since Kafka 3.6) before the first batch of a producer's epoch; with KIP-890
 * that also adds the log to the transaction. */
#define CONTINUES(which, its_epoch) (logs[which].open && logs[which].epoch == (its_epoch))
#define IS_OLD(which, its_epoch) ((its_epoch) < logs[which].epoch)
#ifdef KIP890
#define VERIFIED(which, its_epoch) (coordinator.epoch == (its_epoch) && coordinator.state != Prepare)
#define IS_CONCURRENT(which, its_epoch) \
    (!IS_OLD(which, its_epoch) && !CONTINUES(which, its_epoch) && \
     coordinator.epoch == (its_epoch) && coordinator.state == Prepare)
#else
#ifdef NO_VERIFICATION
#define VERIFIED(which, its_epoch) 1
#else
#define VERIFIED(which, its_epoch) \
    (coordinator.epoch == (its_epoch) && coordinator.state == Ongoing && (coordinator.logs & ONLY(which)))
#endif
#define IS_CONCURRENT(which, its_epoch) 0
#endif
#define ADMITTED(which, its_epoch) \
    (!IS_OLD(which, its_epoch) && (CONTINUES(which, its_epoch) || VERIFIED(which, its_epoch)))

inline append(which, its_epoch, its_inputs, its_position, its_number) {
#ifdef KIP890
    if
    :: !CONTINUES(which, its_epoch) ->
       coordinator.state = Ongoing;
       coordinator.logs = coordinator.logs | ONLY(which)
    :: else
    fi;
#endif
    logs[which].epoch = its_epoch;
    if
    :: !logs[which].open ->
       logs[which].open = 1;
       logs[which].open_at = logs[which].end;
       logs[which].open_first = its_number
    :: else
    fi;
    if
    :: logs[which].open_inputs & its_inputs -> logs[which].open_twice = 1
    :: else
    fi;
    if
    :: its_epoch < owner_epoch -> logs[which].open_fenced = 1
    :: else
    fi;
    logs[which].open_inputs = logs[which].open_inputs | its_inputs;
    logs[which].open_position = its_position;
    logs[which].open_newest = its_number;
#if LANDING
    logs[which].end++;
#endif
#ifdef BREAK_READ_COMMITTED
    logs[which].written = logs[which].written | its_inputs;
    logs[which].written_position = its_position;
#endif
    printf("log %d: appends inputs {%d} of transaction %d, epoch %d\n", which, its_inputs, its_number, its_epoch)
}

/* ---------------------------------------------------------------------------------------------------------- network */

inline forget_late_end() {
    late_end.under_way = 0;
    late_end.epoch = 0;
    late_end.commit = 0
}

inline forget_late_produce(which) {
    late_produce[which].under_way = 0;
    late_produce[which].epoch = 0;
    late_produce[which].inputs = 0;
    late_produce[which].position = 0;
    late_produce[which].number = 0
}

inline deliver_produce(which) {
    if
    :: ADMITTED(which, late_produce[which].epoch) ->
       printf("network: a late Produce arrives\n");
       append(which, late_produce[which].epoch, late_produce[which].inputs,
              late_produce[which].position, late_produce[which].number)
    :: else
    fi;
    forget_late_produce(which)
}

#ifdef LATE_MARKERS
inline deliver_marker(which) {
    accept_marker(which, late_marker[which].epoch, late_marker[which].commit);
    late_marker[which].under_way = 0;
    late_marker[which].epoch = 0;
    late_marker[which].commit = 0
}
#endif

active proctype Network_delivers_late_requests()
{
end:
    do
    :: d_step {
           late_end.under_way ->
           if
           :: ENDS_NOW(late_end.epoch) ->
              printf("network: the late EndTxn arrives\n");
              begin_end(late_end.commit)
           :: else
           fi;
           forget_late_end()
       }
    :: d_step { late_produce[ROWS].under_way -> deliver_produce(ROWS) }
    :: d_step { late_produce[MESSAGES].under_way -> deliver_produce(MESSAGES) }
#ifdef LATE_MARKERS
    :: d_step { late_marker[ROWS].under_way -> deliver_marker(ROWS) }
    :: d_step { late_marker[MESSAGES].under_way -> deliver_marker(MESSAGES) }
#endif
    od
}

/* After this, `complete` answers the next EndTxn and InitProducerId; until then CONCURRENT_TRANSACTIONS does. */
active proctype Coordinator_writes_markers()
{
end:
    do
    :: d_step { coordinator.state == Prepare && (coordinator.unmarked & ONLY(ROWS)) -> write_marker(ROWS) }
    :: d_step { coordinator.state == Prepare && (coordinator.unmarked & ONLY(MESSAGES)) -> write_marker(MESSAGES) }
#ifdef LATE_MARKERS
    :: d_step {
           faults_left > 0 && coordinator.state == Prepare && (coordinator.unmarked & ONLY(ROWS)) ->
           write_marker_twice(ROWS)
       }
    :: d_step {
           faults_left > 0 && coordinator.state == Prepare && (coordinator.unmarked & ONLY(MESSAGES)) ->
           write_marker_twice(MESSAGES)
       }
#endif
#if OMISSIONS
    :: d_step {
           omissions_left > 0 && coordinator.state == Prepare && (coordinator.unmarked & ONLY(ROWS)) ->
           omit_marker(ROWS)
       }
    :: d_step {
           omissions_left > 0 && coordinator.state == Prepare && (coordinator.unmarked & ONLY(MESSAGES)) ->
           omit_marker(MESSAGES)
       }
#endif
    :: d_step {
           coordinator.state == Prepare && coordinator.unmarked == 0 ->
           coordinator.state = Complete;
           coordinator.logs = 0;
           coordinator.gives_up = 0;
           holds(together, hanging(ROWS) || hanging(MESSAGES) ||
                           (logs[ROWS].seen & with_message) == logs[MESSAGES].seen)
       }
    od
}
