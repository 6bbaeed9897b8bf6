"""Checks of property values: types, ranges, durations, tokens."""
