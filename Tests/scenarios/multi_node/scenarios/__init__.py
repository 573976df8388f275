"""The scenarios. Importing a module declares those in it."""
