"""What is known of a topic: its identity, what it takes and keeps, who may use it, where a key goes."""
