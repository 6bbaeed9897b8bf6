"""Writes the statements of the stack that creates the endpoint, and the text of its app."""
