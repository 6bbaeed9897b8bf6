"""Reads files and archives that other people wrote, with bounds in time and memory."""
