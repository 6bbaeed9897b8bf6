"""The commands about running, measuring, planning and operating endpoints."""
