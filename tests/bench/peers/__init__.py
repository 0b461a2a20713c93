"""The same job as others would write it, to be compared with: Kafka Streams and stock Faust."""
