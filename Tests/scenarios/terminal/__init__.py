"""Tests what the command shows on a terminal, in tmux."""
