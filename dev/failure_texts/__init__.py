"""Reads the error texts of Triton and its backends from their sources, and asks ``diagnose``
what each of them means.
"""
