"""Does it run, how fast, what does it cost, what is it doing? Local runs, measuring, planning, operations."""
