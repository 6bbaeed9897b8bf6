"""Drives an endpoint, measures it, and draws the results."""
