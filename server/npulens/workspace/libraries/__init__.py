"""What the APIs of a library lead to: `check --as-library`.

`library_modules.py` reads each module once (what it notes is in `needs.py`): its definitions,
what they are called by through imports and re-exports, and what each needs in any case. `apis.py`
spreads needs over the calls in rounds until nothing changes, so cycles end; the shortest chain is
kept. `rules.py` writes a rule file, which `extend-rules` reads like any other.
"""
