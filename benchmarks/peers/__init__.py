"""What pairs systems on one broker: their inputs, how each is had and started, how it is measured and judged."""
