"""Running what was migrated on the emulated NPU, and what came of it.

`verification.py` copies, migrates and runs a project in processes of its own, judges their
reports (`run_verdicts.py`), compares with the original (`run_comparison.py`) and with static
findings (`agreement.py`). The stand-in for `torch_npu` is on the path of verified runs only. This
is the only part that runs code of a user, on request. `run_wording.py` says what a run showed;
`outcomes.py` lists how runs end; `error_verdicts.py` and `test_results.py` judge errors and tests;
`copy_migration.py` migrates the copy as `npulens migrate` does.
"""
