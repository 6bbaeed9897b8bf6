"""Endpoints that existed before the stack: the stack updates them, and never deletes them."""
