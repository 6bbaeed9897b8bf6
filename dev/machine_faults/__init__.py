"""Kills commands, fills disks and moves clocks, and looks at what the commands leave.

`python -m machine_faults kill` (with `dev` on the path) kills each command that writes at random
moments. `tests/acceptance/test_machine_faults.py` does a small part of it. The table of what each
command leaves and says is `dev/project/machine_faults.md`.
"""
