"""Nodes and pods on their way into the topics: from live clusters (docs/feed.md), and from recordings.

`fleet` runs a `cluster_feed` for each cluster, which runs a `kind_feed` for its nodes and one for its pods.
`listing` lists a kind by the pages of `list_reader`, and `relisting` has that done again each day beside the watch;
`write_order` keeps the two apart. `progress` says what is proven, `watched_objects` trims what the API server sends,
`unread_objects` and `json_pieces` look at what cannot be read. `object_writer` and `feed_records` make the records,
`feed_lease` decides who writes. `profile_reader` reads each `cluster_profile` in a hub. `feed_health` answers probes.

`importer` plays what `evictstream.kit.recordings` reads; `pace` keeps recorded distances of time. `publisher`
writes to Kafka, `operator_signals` an operator's orders.
"""
