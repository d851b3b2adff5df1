"""The language server face: protocol types, and nothing that is not in them."""
