"""Application Auto Scaling of production variants."""
