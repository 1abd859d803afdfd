"""A project folder whose apps are hit at a chosen point (see killing_app.py), for both launchers and for Airflow."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

APP = Path(__file__).parent / "killing_app.py"
STEPS = ("ingest", "seal", "drain", "compact", "gate")


@dataclass(frozen=True)
class Killing:
    """`home` serves as TIDEMARK_HOME, `folder` as TIDEMARK_KILLING."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "killing"

    @classmethod
    def made(cls, home: Path) -> Killing:
        """A project folder that has the apps and nothing else."""
        killing = cls(home)
        killing.folder.mkdir(parents=True)
        (home / "spark_apps").mkdir()
        for step in STEPS:
            shutil.copy(APP, home / "spark_apps" / f"{step}.py")
        return killing

    def plan(self, step: str, point: str, action: str = "kill", *, collection: str = "") -> None:
        """Let the next run of `step` be hit."""
        for left in self.folder.iterdir():
            left.unlink()
        text = json.dumps({"step": step, "point": point, "action": action, "collection": collection})
        (self.folder / "plan.part").write_text(text)
        (self.folder / "plan.part").rename(self.folder / "plan.json")

    def hit(self, *, within: float = 240.0) -> int:
        """Wait until the driver has been hit; its pid."""
        deadline = time.monotonic() + within
        while not (self.folder / "hit").exists():
            assert time.monotonic() < deadline, f"the driver was not hit within {within} s"
            time.sleep(0.02)
        return int((self.folder / "hit").read_text())

    def go(self) -> None:
        """Let a driver that waits go on."""
        (self.folder / "go").touch()
