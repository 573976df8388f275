"""Injects random faults into real processes."""
