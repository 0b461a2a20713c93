"""Random lives of clusters through `evictstream replay`, played and recorded, each judged by `kit/oracle`."""
