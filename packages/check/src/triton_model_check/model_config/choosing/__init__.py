"""Which findings a user wants to see: comments in the files, options and settings."""
