"""What is known about the NPU: rules, their wording, and the findings and fixes they lead to.

`loader.py` reads the files of `rules/` once, `rule_file.py` and `sections.py` check them field by
field. `tables.py` holds what is looked up by name; `model.py` holds rules, findings, fixes and
what a target is. Words of which one must be in whatever can break a rule
(`Catalogue.triggers`) come from the tables, so that a new entry needs no change of the engine.
Entries for scripts and settings have expressions for names; `entry_names.py` compiles them when
first needed. `messages.py` gives the texts of `messages/` by their ids, all but those of
rules; errors that users see have one (`LocalizedError`). Rules and messages are written in
TOML and loaded as JSON (`compiled_tables.py`).
"""
