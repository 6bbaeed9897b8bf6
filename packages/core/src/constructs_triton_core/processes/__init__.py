"""Starts child processes: no other module of the package or of the client does."""
