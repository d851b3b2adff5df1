"""What a project asks of npulens: configuration, chosen rules, release of PyTorch."""
