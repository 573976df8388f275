"""Tests the dashboard in headless Chromium."""
