"""What code is meant for: whether what stands there is a finding at all."""
