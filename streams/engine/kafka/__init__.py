"""Kafka clients on aiokafka, and everything that mends aiokafka; `clients` makes them all."""
