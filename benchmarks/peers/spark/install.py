"""The environments of the Spark peers, below build/peers: Python packages by pip, jars by Maven, each checked
against its hash.

    tools/run python -m benchmarks.peers.spark.install

What cannot be had is reported in one line, and that peer is left out. Nothing here is needed by the project itself.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.peers.spark import ENVIRONMENTS, PEERS, PEERS_HOME, Jar

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
TAKES_SECONDS = 900
"""At most, for one environment or one jar."""


class Unavailable(Exception):
    """A package or a jar cannot be had here; the message says why in one line."""


def install() -> int:
    """Make what is missing."""
    failed: dict[str, str] = {}
    for name, peer in PEERS.items():
        try:
            _environment(peer.environment, failed)
            for jar in peer.jars:
                _jar(jar, failed)
        except Unavailable as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return 0


def _environment(name: str, failed: dict[str, str]) -> None:
    home, wanted = PEERS_HOME / name, "\n".join(ENVIRONMENTS[name])
    noted = home / "installed.txt"
    if noted.exists() and noted.read_text() == wanted:
        return
    _once(name, failed, [[sys.executable, "-m", "venv", "--clear", home], [*_pip(home), *ENVIRONMENTS[name]]])
    noted.write_text(wanted)


def _pip(home: Path) -> list[object]:
    return [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]


def _jar(jar: Jar, failed: dict[str, str]) -> None:
    folder = PEERS_HOME / "jars"
    kept = folder / jar.file_name
    if kept.exists() and _sha256(kept) == jar.sha256:
        return
    if shutil.which("mvn") is None:
        raise Unavailable("its jars are fetched by Maven, and there is no `mvn` on PATH")
    kept.unlink(missing_ok=True)
    fetched = PEERS_HOME / "fetched"
    arguments = [f"-Dartifact={jar.coordinates}", f"-DoutputDirectory={fetched}"]
    _once(jar.coordinates, failed, [["mvn", "--quiet", "--batch-mode", COPY, *arguments]])
    if (found := _sha256(fetched / jar.file_name)) != jar.sha256:
        raise Unavailable(f"{jar.coordinates} has SHA-256 {found}, not {jar.sha256}")
    folder.mkdir(parents=True, exist_ok=True)
    (fetched / jar.file_name).rename(kept)


def _once(what: str, failed: dict[str, str], commands: Iterable[list[object]]) -> None:
    """Run the commands; what failed once is not tried for the next peer. Raises Unavailable."""
    if what in failed:
        raise Unavailable(failed[what])
    for command in commands:
        try:
            words = [str(word) for word in command]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TAKES_SECONDS)
            said = (done.stdout + done.stderr).strip().splitlines()
        except subprocess.TimeoutExpired:
            said = [f"not done after {TAKES_SECONDS} s"]
            done = None
        if done is None or done.returncode:
            failed[what] = f"{what} cannot be had here: {said[0][:200] if said else 'no reason was given'}"
            raise Unavailable(failed[what])


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(install())
