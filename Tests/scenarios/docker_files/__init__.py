"""Static checks of the files in docker/."""
