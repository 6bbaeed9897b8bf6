"""Rehearsals of updates: deploys one version after another in simulated accounts, and reports what happens."""
