"""Training on several cards: wrappers, process groups, Lightning and Ray."""
