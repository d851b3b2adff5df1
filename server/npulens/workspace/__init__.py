"""Many files at once: settings, discovery, and running the engine over them.

From the bottom: `settings` (what a project requests), `files` (finding, reading and writing them),
`index` (modules by their content), `project` (what its files say of each other), `runs` (checking
them), `fixing` (a file with its fixes), `migrating` (a tree), `verifying` (running it on the
emulated NPU), `guiding` (which steps of a migration are done), and `libraries` (which APIs of a
library fail).
"""
