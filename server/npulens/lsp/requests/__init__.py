"""What a client requests: a file for each kind of request, which answers from the last analysis."""
