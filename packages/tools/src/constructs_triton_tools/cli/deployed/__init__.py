"""The commands for deployed endpoints."""
