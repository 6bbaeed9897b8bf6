"""The packages of packed Python environments."""
