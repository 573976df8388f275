"""Tests alerts and the Grafana dashboard's queries with a real Prometheus."""
