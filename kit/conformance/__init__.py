"""The conformance kit: plays situations to a feed or an executor of anyone, and says rule by rule what held.

`fake_api` is an API server on loopback that misbehaves on request; the tests of the product use it too.
"""
