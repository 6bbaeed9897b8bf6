"""Sessions, calls of AWS and the wording of their errors; deployed templates."""
