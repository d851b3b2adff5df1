"""The settings of a project: configuration, chosen rules, release of PyTorch."""
