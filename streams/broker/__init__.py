"""Find or start a Kafka; declare and check the topics.

`topic_specs` says what the topics must be, and `admin` compares that with what is there. `locate` finds a Kafka or
starts one: in a `container`, or `embedded` as one or more `kafka_node` processes, whose program files `jars` downloads.
`clients` and `follow` read topics with kafka-python. Importing this package imports none of these modules.
"""
