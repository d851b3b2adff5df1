"""Where code runs, and why nothing is to be done about a place: nothing vanishes."""
