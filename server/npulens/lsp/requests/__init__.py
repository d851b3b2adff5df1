"""What a client asks for: a file for each kind of request, which answers from the last analysis."""
