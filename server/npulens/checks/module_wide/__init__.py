"""What only a module as a whole shows: the order of calls, and calls that are missing.

An editor reads the statements of a module one by one; what is here sees all of them, and
`module_wide_findings.py` is the door. Each file looks for one thing, and first for a word without
which it cannot be there: most modules cost nothing. `tool_order.py` knows which calls of precision
tools come first, `unseeded.py` which generators of random numbers a training script draws from and
does not seed, `saved_modules.py` where modules are saved and loaded as a whole.
"""
