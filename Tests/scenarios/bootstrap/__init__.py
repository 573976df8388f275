"""Measures how long a new node takes to load a snapshot."""
