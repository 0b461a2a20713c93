"""Everything that moves data: the engine, the service, ways in and out, the command line.

What things *are* and what is *decided* lives in `models`, which knows nothing of this package. In here imports
point one way: `cli`, then the rooms (`service`, `replay`, ...), then `engine` and `broker`, then
`settings`, then `errors`. import-linter holds that.
"""
