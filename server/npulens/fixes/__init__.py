"""From a finding to changed text: edits, imports, and applying them."""
