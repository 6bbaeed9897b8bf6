"""Places what models need besides their own files: Python environments and metrics."""
