"""One engine's life in an environment of its own: `python -m benchmarks.corrections NAME CASE OUT`.

CASE is a JSON object of a history's fields; the figures go to the file OUT as JSON. Started by `corrections`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.corrections import history_from, one_life

if __name__ == "__main__":
    name, case, out = sys.argv[1:]
    Path(out).write_text(json.dumps(one_life(name, history_from(case))))
