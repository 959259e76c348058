"""Pools, subpools and cohorts: their quotas, and the quota tree that they make."""
