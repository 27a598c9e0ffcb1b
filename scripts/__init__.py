"""The set-up behind the Makefile, and what makes generated files."""
