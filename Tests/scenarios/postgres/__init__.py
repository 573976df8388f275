"""Tests the export and ingest with a real PostgreSQL, and the programs of Examples/postgres between them."""
