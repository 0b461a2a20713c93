"""Find or start a Kafka; declare and check our topics.

`topics` says what they must be, `admin` compares that with what is; `locate` finds a Kafka or starts one in a
`container` or `embedded`, of one or more `node` processes, whose program files `jars` brings; `clients` and `follow`
read topics with kafka-python. Importing this package imports none of them.
"""
