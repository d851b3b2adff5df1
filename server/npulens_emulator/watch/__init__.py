"""What a verified run did: written down by the process itself, judged by npulens.

`NPULENS_VERIFY` names the folder of the run; with it, each process that imports PyTorch writes a
report `<pid>.json` there. `settings.json` in it says what is wanted:

- `root`: the folder whose files are the user's code;
- `steps`: the number of optimizer steps after which the process ends, or null;
- `seed`: what random numbers start from;
- `parameters`: whether the sizes of all parameters are noted after each step;
- `shapes`: whether the shapes of what is assigned to names are noted;
- `apis`: names of PyTorch's APIs that do not work on the NPU, with the reason.
"""
