"""Deletes a real-time endpoint for some hours, and creates it again with its scaling."""
