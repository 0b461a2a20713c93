"""Runs in this process under virtual time: the real service on a simulated Kafka.

Real: everything of `models`; the partition writer, take-over, outbox, changelog reader, transactional producer of ours,
timers heap, lease and the owner of partitions (`streams.engine`); the partition's logic, clusters, dead letters, gates,
freshness, clock watch and timer service (`evictstream.streams.service`).

Simulated, by what stands in this folder:

- time: one virtual clock, a wall clock for each worker that can be wrong, an event loop for each worker (`world`);
- brokers: logs with append times, markers, holes and compaction, transactions that commit at one instant, fencing by
  epoch, time-outs, refusals, outages, markers left out (`log`, `broker`); as one, without replicas and leaders;
- the network: delays, cuts, answers that are lost, requests that outlive their sender (`network`);
- aiokafka's producer, consumer and admin client below the engine (`clients`);
- the group coordinator, with an eager rebalance (`group`);
- Faust: its order of things at a rebalance, its agents, the consumer's thread (`worker`, `fetching`);
- the supervisor that starts workers again, feeds, executors and clusters (`run`, and `tests.faults.actor`).

So what is wrong in Faust, aiokafka, `engine.faust.app`, `.recovery` and `.transport`, or in a real broker, is not
found here; the real runs are for that.
"""
