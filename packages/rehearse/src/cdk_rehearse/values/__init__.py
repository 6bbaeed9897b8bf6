"""Values that a rehearsal does not know, and their stand-ins."""
