"""Lines that measure or check a training script, put into it and taken out again.

An instrument (`instrument_model.py`) says which lines belong to which place of a script: behind
the imports, before the loops, at the begin and the end of a step, behind the loops.
`known_instruments.py` has those that exist. `inserting.py` puts them into a plain script, whose
places `script_places.py` finds with `npulens.training`; `callbacks.py` does it for programs whose
loop is in a library. Every line that is put in ends with a mark, so that `marks.py` takes out what
was put in and restores each byte.
"""
