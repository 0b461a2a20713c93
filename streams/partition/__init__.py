"""The logic of one partition: bytes in; rows, messages and wake-ups out."""
