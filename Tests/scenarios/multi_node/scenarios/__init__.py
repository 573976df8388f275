"""The scenarios. Importing a module adds its scenarios to the registry."""
