"""Runs the tiers of tests, all of them whatever happens, and says at the end what each came to."""
