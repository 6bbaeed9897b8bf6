"""Runs the benchmarks and writes ``dev/project/benchmarks.md``: ``make bench``."""
