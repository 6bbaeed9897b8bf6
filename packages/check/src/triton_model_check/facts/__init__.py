"""Facts that AWS and NVIDIA publish: JSON files with their sources,
and typed functions that look them up.
"""
