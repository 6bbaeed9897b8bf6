"""Which findings a user wants to see, by options and settings."""
