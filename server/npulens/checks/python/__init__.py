"""One file for each kind of thing that is looked for in Python, in rooms by what it is about.

`registry.py` says which check looks at which nodes.

Whatever compares devices (`x.device.type in ("cuda", "npu")`) is settled, and so
is what only concerns another device, and text for people. Settings are looked for wherever a name
is given a value (`checks/given.py` says where that is; `setting_values.py` reads the tables,
`attention_options.py` and `lightning_settings.py` know what libraries mean by theirs). Strings
that begin as a script or a command are read as shell (`batch_scripts.py`, `environment.py`);
`slurm_requests.py` reads what submitit is given. What a `setup.py` requires is read like a list of
requirements (`requirements.py`). Advice on speed (`performance.py`) is for scripts that are run and
train.
"""
