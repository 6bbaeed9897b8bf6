"""What every command shares: its exit codes, the parser of its arguments,
and the end after a bug.
"""
