"""The control plane: issues checkpoints, records what is durable, notifies. Start reading at `core`."""
