"""Which functions are evaluated, what of the events is reported, and how much each place hurts."""
