"""Searches the configuration of a model that holds the highest rate within a latency limit.

The search (``racing``, ``axes``, ``rounds``) only calls a function that measures a rate of a candidate, so it
also runs on a simulated clock. ``bench`` is that function on this machine.
"""
