"""The endpoint constructs."""
