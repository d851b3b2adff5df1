"""Runs over files: one file, many in several processes, and what is kept of earlier runs.

`run.py` checks one file, `processes.py` many, in several processes and in the order of the paths.
Where the program forks, catalogue, facts of the project and cache are shared.

The cache (`cache.py`) rests on `analyze` being a function. A file below `.npulens_cache` belongs
to one state of all that findings depend on besides the checked file: version and files of
npulens, rules of the user, settings, target, facts of the project. In it, findings are known by a
digest of path, content and shim state. It is written once, at the end; of two runs at once the
last wins. A file that breaks off, does not fit its checksum or has another form counts as absent.
It is data, since it may come with a project; `fix` never reads it.

A baseline (`baseline.py`) knows a finding by path, rule and a digest of its line without the
spaces, counted: what moves stays accepted, what is copied is new. Fingerprints of SARIF and
GitLab are the same. `overview.py` keeps packed reports (`packed_report.py`) of files that are not
open in an editor, and reads their text again when it is needed.
"""
