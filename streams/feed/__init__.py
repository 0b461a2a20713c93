"""Into the topics: recordings of watches, and what operators tell the service.

`documents` cuts a byte stream into JSON documents, `recording` reads them as watch events, `trimming` reduces objects
to the fields in use, `timing` keeps recorded time, `publisher` writes to Kafka, `importing` joins them. `orders` writes
what an operator tells the service.
"""
