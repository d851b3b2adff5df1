"""Python source: statements, recovery, scopes, qualified names and constants."""
