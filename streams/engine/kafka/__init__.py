"""The engine's Kafka clients, on aiokafka, and all that mends aiokafka."""
