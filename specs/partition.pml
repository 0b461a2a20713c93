/* One partition number between two workers. docs/specification.md explains it for readers who do not know Promela.
 *
 * `make specs` searches every order in which the steps can happen. A switch whose name begins with BREAK_ takes one
 * guard of the product away: then the search must find an order that breaks a promise.
 */

#ifndef INPUTS
#define INPUTS 2     /* input records; each changes a row, and some cause a message */
#endif
#ifndef FAULTS
#define FAULTS 2     /* deaths, time-outs, late and refused requests and lost answers, all together */
#endif
#ifndef MOVES
#define MOVES 1      /* how often the group gives the partition to the other worker */
#endif
#ifndef OMISSIONS
#define OMISSIONS 0  /* markers that a broker leaves out (KAFKA-20734) */
#endif
#ifndef DEPOSED
#define DEPOSED 0    /* whether a leader of the changelog that was deposed, and does not know it, answers readers */
#endif
#ifndef LANDING
#define LANDING DEPOSED  /* whether offsets are counted, so that a takeover can compare where its first row landed */
#endif

#define ALL ((1 << INPUTS) - 1)
#define PREFIX(position) ((1 << (position)) - 1)

/* The two logs. A set of logs, like a set of inputs, is a number whose bits are its members. */
#define ROWS 0      /* the changelog: rows, positions, the transaction's number */
#define MESSAGES 1  /* the output topic */
#define ONLY(log) (1 << (log))

byte group = 0;            /* the worker to whom the group assigns the partition */
byte faults_left;
byte moves_left;
byte omissions_left;
byte with_message;         /* the inputs that cause a message */
byte numbers = 0;          /* of transactions: they never repeat, since the product counts on from the clock */

/* For the invariants only; no step of a worker or a broker looks at them. */
byte owner_epoch = 0;      /* what the newest InitProducerId has given */
bit outsider[2];           /* whether a worker has failed after the group had given its partition away */
bit excused = 0;           /* whether something has happened that docs/guarantees.md says is not promised */

/* The promises, by the names that docs/specification.md gives them. */
mtype = { together, not_twice, not_by_a_fenced_owner, positions_with_rows, one_owner, nothing_forgotten };

#ifdef NOTHING_EXCUSED
#define EXCUSED 0
#else
#define EXCUSED excused
#endif

#ifndef PROMISE
#define PROMISE 0  /* the one promise that is looked at, where another one would be found broken before it */
#endif

inline holds(promise, what) {
    if
    :: (what) || EXCUSED || (PROMISE && promise != PROMISE)
    :: else ->
       printf("broken: %e\n", promise);
       assert(false)
    fi
}

#include "broker.pml"
#include "worker.pml"

/* What happens to workers and coordinator from outside, at any moment. Death is a step of the worker. */
active proctype Environment()
{
end:
    do
    :: d_step {
           moves_left > 0 ->
           moves_left--;
           group = 1 - group;
           outsider[group] = 0;
           printf("group: gives the partition to worker %d\n", group)
       }
    :: d_step {
           faults_left > 0 && coordinator.state == Ongoing ->
           faults_left--;
           printf("coordinator: the transaction has timed out\n");
           fence_and_abort()
       }
#if DEPOSED
    :: d_step {
           !deposed.was ->
           deposed.was = 1;
           deposed.answers = 1;
           deposed.position = logs[ROWS].position;
           deposed.number = logs[ROWS].number;
           deposed.end = (logs[ROWS].open -> logs[ROWS].open_at : logs[ROWS].end);
           printf("log 0: has a new leader; the old one does not know it\n")
       }
    :: d_step { deposed.answers -> forget_deposed() }
#endif
    od
}

/* When nothing can happen any more, all that was owed is there. */
active proctype Nothing_is_forgotten()
{
end:
    atomic {
        timeout ->
        holds(nothing_forgotten, hanging(ROWS) || hanging(MESSAGES) ||
                                 (logs[ROWS].seen == ALL && logs[MESSAGES].seen == with_message))
    }
}

init {
    atomic {
        /* Fewer faults too: after the last one everything that is owed has to come. */
        select(faults_left : 0 .. FAULTS);
        select(moves_left : 0 .. MOVES);
        select(omissions_left : 0 .. OMISSIONS);
        select(with_message : 1 .. ALL);
        run Worker(0);
        run Worker(1)
    }
}
