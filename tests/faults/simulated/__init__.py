"""Runs in this process under virtual time: the real service on a simulated Kafka.

Real: all of `models` and of `streams.engine.core`; the partition producer and the log reader of `streams.engine.kafka`;
and the `WorkerCore` of `streams.worker`, as the app builds it. It gets a simulated clock, group and client classes.

Simulated, by the files of this folder:

- time: one virtual clock, a wall clock for each worker that can be wrong, an event loop for each worker (`world`);
- brokers: logs with append times, markers, holes and compaction, transactions that commit at one instant, fencing by
  epoch, time-outs, refusals, outages, markers left out (`log`, `broker`); as one, without replicas and leaders;
- the network: delays, cuts, answers that are lost, requests that outlive their sender (`network`);
- the classes of aiokafka that `streams.engine.kafka` is made of: producer, consumer, admin client (`clients`);
- the group coordinator, with an eager rebalance (`group`);
- Faust: when it revokes and assigns, its agents, the consumer's thread (`worker`, `fetching`);
- the supervisor that starts workers again, feeds, executors and clusters (`run`, and `tests.faults.actor`).

So an error in Faust, in aiokafka, in `streams.engine.faust` or in a real broker does not show here, but in the runs
of `tests.faults.real`.
"""
