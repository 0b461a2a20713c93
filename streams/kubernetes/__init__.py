"""Speaks with the API server of a cluster: credentials and TLS as kubectl has them, JSON as it comes.

`access` says which cluster and finds the credentials, `connection` sends requests and reads watches line by line. Feed
and executor use it, from several threads. The official client library loads the configuration and makes the connection
pool; its generated classes are not used, since turning each object into them costs thirty times what reading one costs.
"""
