"""Runs the commands of README.md and docs."""
