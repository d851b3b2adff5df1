"""The documents of a client, each with its newest analysis in the types of the protocol."""
