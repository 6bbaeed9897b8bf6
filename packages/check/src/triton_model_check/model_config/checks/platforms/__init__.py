"""Rules of single platforms."""
