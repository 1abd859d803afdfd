"""One engine's days in an environment of its own: `python -m benchmarks.derived NAME CASE OUT`.

CASE is a JSON object of the fields of `Days`; the figures go to the file OUT as JSON. Started by beside.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.derived.beside import days_from, life

if __name__ == "__main__":
    name, case, out = sys.argv[1:]
    Path(out).write_text(json.dumps(life(name, days_from(case))))
