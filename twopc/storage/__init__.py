"""Durable files and the folders that hold them."""
