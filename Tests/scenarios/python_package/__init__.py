"""Tests the Python package: from the source, and as an installed wheel."""
