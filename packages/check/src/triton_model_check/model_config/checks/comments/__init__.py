"""Checks of the comments that ignore findings."""
