"""Reads an endpoint that was created by hand, and writes an app that creates the same endpoint."""
