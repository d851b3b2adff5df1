"""The migration guide: which points of a migration are done in a project, and which is next.

The points are data (`rules/guide.toml`, read by `guide_points.py`). `project_guide.py` is the door:
from a project that was checked to its guide. `guide_evidence.py` gathers what answers need, such as
names in the code, and `training_places.py` which script trains; `point_answers.py` knows the kinds
of answers. What nobody can read from the code is in one file that people commit
(`guide_state.py`); `npulens verify` notes its verdicts there (`noted_runs.py`). `guide_records.py`
makes plain data of a guide, in a language.
"""
