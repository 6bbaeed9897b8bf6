"""Checks the memory of public systems on the machines that their authors name."""
