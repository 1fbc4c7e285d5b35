"""The plugin for ms-swift (4.6); `ms_swift_grpo.sh` beside this names the file.

Importing the adapter registers the reward function `assay`.

Run in `make test-adapters`: imported as ms-swift imports plugins, and called by its own reward
code, against a real server. `make test` has no ms-swift, and only reads the file.
"""

import assay.clients.trainers.ms_swift  # noqa: F401  # it registers itself
