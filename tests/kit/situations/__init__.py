"""Worked situations: a recording of each, the policy for it, and the verdict that stays."""
