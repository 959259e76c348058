"""Benchmarks: CPU time and ratios, measured in one run. Nothing here fails by the clock."""
