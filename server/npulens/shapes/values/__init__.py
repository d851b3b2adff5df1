"""What is known of a value: sizes on symbols, tensors, numbers; events that are recorded."""
