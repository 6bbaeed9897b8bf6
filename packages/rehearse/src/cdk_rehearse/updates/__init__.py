"""Rehearsals of updates: deploys OLD and NEW in simulated accounts, and reports what happens."""
