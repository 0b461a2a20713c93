/* A worker: takes the partition over, writes one transaction after another, fails, and takes over again.
 *
 * Comments name the place in the product that a block stands for. Each atomic block is one step: between two of them
 * anything else may happen, and the worker may die or hear that the partition is revoked.
 */

/* An EndTxn without an answer: with KIP-890 the client may ask again, before it the transaction has to fail. */
#if defined(BREAK_ENDTXN_ONCE) || (defined(KIP890) && !defined(ENDTXN_ONCE))
#define ASKS_AGAIN 1
#else
#define ASKS_AGAIN 0
#endif

#ifdef BREAK_MARKERS_COMMIT_ALL
#define COMMITS_IF(what) 1
#else
#ifdef BREAK_MARKERS_ABORT_ALL
#define COMMITS_IF(what) 0
#else
#define COMMITS_IF(what) (what)
#endif
#endif

mtype = { marks_rows, marks_messages, settles, lives };  /* what a transaction is for */
#define MARKS (aim == marks_rows || aim == marks_messages)

/* What a transaction takes from the outbox. */
#define APPLIED (PREFIX(next) & ~PREFIX(position))

/* ------------------------------------------------------------------------------------------------ parts of the steps */

inline forget_everything() {
    epoch = 0;
    number = 0;
    position = 0;
    next = 0;
    written = 0;
    read_to = 0;
    open_messages = 0;
    unsent = 0;
    commit = 0;
    outrun = 0;
    aim = 0
}

inline dies() {
    atomic {
        faults_left > 0 ->
        faults_left--;
        printf("worker %d: dies\n", me);
        forget_everything();
        goto assigned_or_not
    }
}

inline is_revoked() {
    atomic {
        group != me && !(MARKS && unsent == 0) ->  /* a marker that has been begun is finished */
        printf("worker %d: closes, since the partition is revoked\n", me);
        forget_everything();
        goto assigned_or_not
    }
}

inline own() {
    epoch = coordinator.epoch;
    owner_epoch = epoch;
    outrun = 0;
    printf("worker %d: InitProducerId gives epoch %d\n", me, epoch)
}

/* engine/core/markers.py: what is open now lacks its marker. */
inline find_open_transactions() {
    if
    :: logs[MESSAGES].open -> open_messages = logs[MESSAGES].open_first
    :: else
    fi;
    if
    :: logs[ROWS].open ->
       aim = marks_rows;
       commit = COMMITS_IF(logs[ROWS].open_newest <= logs[MESSAGES].number);
       unsent = ONLY(ROWS);
       goto add
    :: else
    fi
}

/* engine/kafka/log_reader.py: `read_committed`, to the last stable offset. */
inline read_rows() {
#ifdef BREAK_READ_COMMITTED
    position = logs[ROWS].written_position;
#else
    position = logs[ROWS].position;
#endif
    number = logs[ROWS].number;
#if LANDING
    read_to = (logs[ROWS].open -> logs[ROWS].open_at : logs[ROWS].end);
#endif
    printf("worker %d: reads rows up to offset %d, of transaction %d: next input is %d\n", me, read_to, number, position)
}

inline begin_transaction(its_aim) {
    aim = its_aim;
#if OMISSIONS
    numbers++;
    number = numbers;
#endif
    written = next;
    commit = 1
}

/* A batch for one log, and its acknowledgement. */
inline send(which, its_inputs) {
    if
    :: ADMITTED(which, epoch) ->
       unsent = unsent & ~ONLY(which);
#if LANDING && !defined(BREAK_LANDING)
       if
       :: aim == settles && logs[which].end != read_to ->
          printf("worker %d: the first row has not landed where the reading ended\n", me);
          append(which, epoch, its_inputs, written, number);
          goto lost
       :: else
       fi;
#endif
       append(which, epoch, its_inputs, written, number)
    :: !ADMITTED(which, epoch) ->
       printf("worker %d: its Produce to log %d is refused\n", me, which);
       goto lost
    :: faults_left > 0 && !late_produce[which].under_way ->
       faults_left--;
       late_produce[which].under_way = 1;
       late_produce[which].epoch = epoch;
       late_produce[which].inputs = its_inputs;
       late_produce[which].position = written;
       late_produce[which].number = number;
       printf("worker %d: its Produce to log %d is late, and has no answer\n", me, which);
       goto lost
#ifdef BREAK_REFUSED_BATCHES
    :: faults_left > 0 ->
       faults_left--;
       unsent = unsent & ~ONLY(which);
       printf("worker %d: its batch for log %d is refused for good; it goes on\n", me, which)
#endif
    fi
}

/* --------------------------------------------------------------------------------------------------------- the worker */

proctype Worker(byte me)
{
    byte epoch;          /* of its producer */
    byte number;         /* of its transaction; after reading, of the newest one in the rows */
    byte position;       /* next input to apply, of what is committed */
    byte next;           /* the same, once the transaction on its way is committed */
    byte written;        /* the positions that this transaction writes */
    byte read_to;        /* where the reading of the changelog has ended */
    byte open_messages;  /* first transaction whose messages have no marker, 0 without */
    byte unsent;         /* the set of logs that still need a batch, or a marker */
    bit commit;          /* how the transaction is to end */
    bit outrun;          /* whether its InitProducerId has aborted a transaction, so another may begin before it returns */
    mtype aim;

end_not_assigned:
assigned_or_not:  /* engine/core/ownership.py: a takeover follows an assignment */
    group == me;

take_over:  /* engine/core/takeover.py `_fence`: InitProducerId */
#ifdef BREAK_FENCING_FIRST
    atomic { read_rows() };
#endif
fence:
    if
    :: atomic {
           coordinator.state != Prepare ->  /* before that CONCURRENT_TRANSACTIONS: it asks again */
           holds(one_owner, !outsider[me]);
#ifndef BREAK_FENCING
           if
           :: coordinator.state == Ongoing && outrun && group != me ->
              forget_everything();
              goto assigned_or_not  /* two workers do not outrun each other for ever: by now it has heard */
           :: coordinator.state == Ongoing && !(outrun && group != me) ->
              printf("worker %d: InitProducerId aborts the open transaction\n", me);
              outrun = 1;
              fence_and_abort();
              goto fence
           :: else ->
              coordinator.epoch++;
              coordinator.state = Empty
           fi;
#endif
           own()
       }
    :: dies()
    :: is_revoked()
    fi;

#ifndef BREAK_MARKERS
    if
    :: atomic { find_open_transactions() }
    :: dies()
    :: is_revoked()
    fi;
#endif
rows_have_markers:
    if
#ifdef BREAK_FENCING_FIRST
    :: skip
#else
    :: atomic { read_rows() }
#if DEPOSED
    :: atomic { deposed.answers -> read_old_rows() }
#endif
#endif
    :: dies()
    :: is_revoked()
    fi;
    atomic {
        if
        :: open_messages ->
           aim = marks_messages;
           commit = COMMITS_IF(open_messages <= number);
           unsent = ONLY(MESSAGES);
           open_messages = 0;
           goto add
        :: else
        fi
    };
messages_have_markers:  /* `_write_first`: the positions, unchanged */
    atomic {
        next = position;
        unsent = ONLY(ROWS);
        begin_transaction(settles);
        goto add
    };

live:  /* engine/core/committer.py `_commit` */
end_all_is_done:
    if
    :: atomic {
           position < INPUTS ->
           select(next : position + 1 .. INPUTS);
           unsent = ONLY(ROWS);
           if
           :: APPLIED & with_message -> unsent = ONLY(ROWS) | ONLY(MESSAGES)
           :: else
           fi;
           begin_transaction(lives);
#ifdef BREAK_POSITIONS
           select(written : next .. INPUTS)
#endif
       }
#ifndef BREAK_KEEP_ALIVE
    :: atomic {  /* `keep_alive`: after a long quiet the positions are written once more */
           position == INPUTS && coordinator.epoch != epoch ->
           printf("worker %d: hears that it is fenced\n", me);
           goto lost
       }
#endif
    :: dies()
    :: is_revoked()
    fi;

add:  /* engine/kafka/partition_producer.py `_write` and `mark`: AddPartitionsToTxn */
#ifdef BREAK_WAITING_BATCHES
    if
    :: atomic {
           aim == lives && faults_left > 0 ->
           faults_left--;
           printf("worker %d: the transaction is refused for good; a batch that waited goes out\n", me);
           if
           :: ADMITTED(ROWS, epoch) -> append(ROWS, epoch, APPLIED, written, number)
           :: else
           fi;
           goto lost
       }
    :: skip
    fi;
#endif
#ifdef KIP890
    if
    :: !MARKS -> goto produce  /* Produce adds the log to the transaction */
    :: else
    fi;
#endif
    if
    :: atomic {
           coordinator.epoch != epoch ->
           printf("worker %d: AddPartitionsToTxn is refused, the worker is fenced\n", me);
           goto lost
       }
    :: atomic {
           coordinator.epoch == epoch && coordinator.state != Prepare ->
           coordinator.state = Ongoing;
           coordinator.logs = coordinator.logs | unsent;
           printf("worker %d: adds [%d] to its transaction\n", me, unsent);
           if
           :: MARKS ->
              coordinator.gives_up = !commit;
              unsent = 0
           :: else
           fi
       }
    :: dies()
    :: is_revoked()
    fi;

produce:
    do
    :: atomic { (unsent & ONLY(ROWS)) && !IS_CONCURRENT(ROWS, epoch) -> send(ROWS, APPLIED) }
    :: atomic { (unsent & ONLY(MESSAGES)) && !IS_CONCURRENT(MESSAGES, epoch) -> send(MESSAGES, APPLIED & with_message) }
    :: unsent == 0 -> break
    :: dies()
    :: is_revoked()
    od;

end_transaction:  /* engine/kafka/transactional_producer.py `_send_with_care`: EndTxn */
    if
    :: atomic {
           ENDS_NOW(epoch) ->
           begin_end(commit);
           printf("worker %d: EndTxn is carried out and answered\n", me)
       }
    :: atomic {
           ENDED_BEFORE(epoch, commit) ->
           printf("worker %d: EndTxn is answered, it has been carried out before\n", me)
       }
    :: atomic {
           !ENDS_NOW(epoch) && !ENDED_BEFORE(epoch, commit) ->
           printf("worker %d: EndTxn is refused\n", me);
           goto lost
       }
#if ASKS_AGAIN
    :: atomic {
           ENDS_NOW(epoch) && faults_left > 0 ->
           faults_left--;
           begin_end(commit);
           printf("worker %d: EndTxn is carried out, its answer is lost: asks again\n", me);
           goto end_transaction
       }
#endif
    :: atomic {
           faults_left > 0 && !late_end.under_way ->
           faults_left--;
           late_end.under_way = 1;
           late_end.epoch = epoch;
           late_end.commit = commit;
#if ASKS_AGAIN
           printf("worker %d: EndTxn is late: asks again\n", me);
           goto end_transaction
#else
           printf("worker %d: EndTxn is late, and has no answer\n", me);
#ifdef BREAK_NEW_PRODUCER
           goto live
#else
           goto lost
#endif
#endif
       }
    :: dies()
    :: is_revoked()
    fi;
    atomic {
#ifdef KIP890
        epoch++;
#endif
        if
        :: !MARKS -> position = next; goto live
        :: else
        fi
    };

    if  /* engine/core/markers.py `_end`: looks whether the marker has come */
    :: atomic {
           coordinator.state != Prepare || coordinator.epoch != epoch ->
           if
           :: aim == marks_messages -> aim = 0; goto messages_have_markers
           :: aim == marks_rows && !logs[ROWS].open -> aim = 0; goto rows_have_markers
           :: else
           fi
       }
    :: dies()
    :: is_revoked()
    fi;

lost:  /* engine/core/partitions.py `_repair` */
    atomic {
        if
        :: group != me -> outsider[me] = 1
        :: else
        fi;
        forget_everything();
        printf("worker %d: has lost the partition, and will take it over again\n", me)
    };
#ifndef BREAK_CONFIRMATION
    goto assigned_or_not  /* `confirmed_since`: the group has to confirm it after the failure */
#else
    goto take_over
#endif
}
