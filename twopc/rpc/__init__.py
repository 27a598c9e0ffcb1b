"""The wire between the two planes: generated messages, their codec, and the data plane's two clients."""
