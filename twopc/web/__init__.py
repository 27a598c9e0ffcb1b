"""What a process of ours answers over HTTP: read only, on loopback unless told otherwise."""
