"""What a check found, in the formats that people, code hosts and CI services read."""
