"""Runs the benchmarks and writes ``docs/benchmarks.md``: ``make bench``."""
