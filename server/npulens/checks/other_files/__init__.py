"""Files beside the Python code: scripts, settings, C++ and CUDA sources.

`launch_files.py` reads scripts, Dockerfiles, settings and lists of requirements once from left to
right and looks words up in the same tables as Python; `launch_report.py` gathers what is found.
Python in a here-document or behind `python -c` is analysed as Python, the latter without fixes,
which could end its quotes. `shell_commands.py` walks commands; `shell_programs.py` says which
word is the program behind `env`, `srun`, `ssh` or `conda run`, and which is a script itself;
`shell_arms.py` judges each test by whether it holds on an NPU machine. Only the arms beside one
for the NPU are left out, and what fixes write (`npu-smi`, `hccl`) decides nothing. Recipes of
Makefiles are read as shell (`makefiles.py`); a variable that is run, as `$PIP_INSTALL torch`,
means what it was set to. `dependencies.py` reads what is installed, also from TOML and INI;
whether a version admits a release for the NPU is decided by packaging (`package_releases.py`).
`command_options.py` gathers the options of a command through the variables of its script;
`suite_options.py` judges those of Megatron-LM and MindSpeed.
`configuration_files.py` reads settings; files of CI lead to information at most.
What is written for the NPU is looked at, too: `tool_commands.py` and `tool_settings.py` know the
command lines and settings of its tools, `script_variables.py` compares variables that are set
together, and `launch_numbers.py` numbers of nodes, processes and devices.
`release_pairs.py` compares the pinned releases of torch_npu, PyTorch, Python and CANN.
`any_device.py` says what of all this the style `device-agnostic` writes.

C++ and CUDA sources are read as tokens in linear time (`native_tokens.py`); `cpp_bindings.py`
finds what they bind for Python. `cmake_targets.py` finds what CMake builds from CUDA code.
"""
