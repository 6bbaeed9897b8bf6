"""Measures the memory that a real Triton server takes."""
