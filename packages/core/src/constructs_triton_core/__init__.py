"""What all packages need: errors, findings, bounded reads, child processes, the shell of commands, templates."""
