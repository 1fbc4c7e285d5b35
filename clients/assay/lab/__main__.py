"""`python -m assay.lab TRAINER FILE [SCRIPT...]`: one trial in this process; FILE gets it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from assay.lab.running import try_out

Path(sys.argv[2]).write_bytes(pickle.dumps(try_out(sys.argv[1], sys.argv[3:])))
