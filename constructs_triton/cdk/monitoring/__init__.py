"""Alarms and dashboards."""
