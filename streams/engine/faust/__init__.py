"""What Faust does here, and what it does not.

Faust provides the frame: services that start and stop in order, the consumer's own thread, the member of the
consumer group with Faust's assignor (the same partition numbers of all inputs go to one worker), rebalance callbacks,
and agents: one for each input, fed through Faust's channels and flow control. It does not see single records, state or
offsets: a whole fetched batch is one Faust message, and the agent hands it to `engine.core.partitions`. Faust writes
nothing: its producer never connects, its tables hold nothing, its recovery only calls the takeover of
`engine.core.takeover`, and its offset commits are replaced by the positions of committed transactions. Its
exactly-once mode, web server, topic declaration, standby tables and files are off.
"""
