"""What a check found, kept until a file or a rule changes."""
