"""Reads from AWS: sessions, calls with their errors, and deployed templates."""
