"""Whatever a collection file holds, it is one line that names the file, and the others beside it stay.

No test here looks at a clock: what is not bounded takes minutes, gigabytes or for ever, which nobody overlooks.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure

GOOD = """\
name: counts
key: [id]
value: [state]
columns: {id: int, state: string, gone: bool}
start: 2013-01-01
time: arrival
source:
  path: "{{ landing }}/{{ ds }}/*.jsonl"
  format: jsonl
  envelope: upsert
  delete_when: gone = TRUE
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def with_path(path: str) -> str:
    return GOOD.replace("{{ landing }}/{{ ds }}/*.jsonl", path)


def with_condition(condition: str) -> str:
    return GOOD.replace("gone = TRUE", condition)


WIDE = GOOD.replace("[state]", f"[{', '.join(f'c{n}' for n in range(5000))}]").replace(
    "state: string", ", ".join(f"c{n}: string" for n in range(5000))
)
LOOPS = "".join("{% for i in 'aaaaaaaaaa' %}" for _ in range(9)) + "x" + "{% endfor %}" * 9
HOSTILE = {
    "NUL byte": (GOOD + "# \0\n", 12, "U+0000 is not allowed"),
    "NUL escaped": (with_path("/x/\\0"), 8, "U+0000; remove it"),
    "half a pair": (with_path("/x/\\ud800"), 8, None),
    "control character": (GOOD + "# \x07\n", 12, "U+0007 is not allowed"),
    "half a condition a million times": (with_condition('a = "' + "x" * 60_000), 11, "at position 5"),
    "chain of conditions": (with_condition(" OR ".join(["gone = 1"] * 5000)), 11, "gone, of type bool, with 1"),
    "a condition without end": (with_condition("gone = TRUE OR " * 5_000), 11, "may have 65536"),
    "digits": (with_condition("gone = " + "0" * 5000), 11, "a number that fits a double"),
    "Jinja nested": (with_path("/x/{{ " + "(" * 480 + "ds" + ")" * 480 + " }}"), 8, "too complex"),
    "Jinja long": (with_path("/x/{{ " + "(" * 100_000 + "ds }}"), 8, "it may have 1000"),
    "Jinja filters": (with_path("/x/{{ ds" + "|lower" * 100 + " }}"), 8, "nested deeper than 20"),
    "Jinja product": (with_path("/x/{{ 'a' * 20000000000 }}"), 8, "arithmetic is not allowed"),
    "Jinja product of floats": (with_path("/x/{{ 'a' * 2e10 }}"), 8, "arithmetic is not allowed"),
    "Jinja power": (with_path("/x/{{ 9 ** 9 ** 9 }}"), 8, "arithmetic is not allowed"),
    "Jinja range": (with_path("/x/{{ range(99999999)|list }}"), 8, "is not allowed"),
    "Jinja loops": (with_path(LOOPS), 8, "{% for %} is not allowed"),
    "Jinja join": (
        with_path("/x/{{ ds|replace('', '0123456789')" + "|replace('0', '00000000')" * 9 + " }}"),
        8,
        "4096",
    ),
    "Jinja width": (with_path("/x/{{ data_interval_start.strftime('%999999999d') }}"), 8, "cannot take"),
    "Jinja center": (with_path("/x/{{ ds.center('9') }}"), 8, "has no method 'center'"),
    "Jinja include": (with_path("/x/{% include '/etc/passwd' %}"), 8, "is not allowed"),
    "Jinja attribute": (with_path("/x/{{ ds.__class__ }}"), 8, "unsafe"),
    "Jinja digits": (with_path("/x/{{ " + "9" * 900 + " }}{{ ds }}"), None, None),
    "alias bomb": (BOMB + GOOD, None, "more than 20000 values"),
    "alias of itself": ("name: &a [*a]\n", 1, "something around itself"),
    "alias of a field around": ("name: &a {b: {c: *a}}\n", 1, "something around itself"),
    "alias of nothing": ("name: *a\n", 1, None),
    "nested lists": ("name: " + "[" * 500_000, 1, "nested deeper than 30"),
    "nested mappings": ("name: " + "{a: " * 200_000, 1, "nested deeper than 30"),
    "nested blocks": ("".join(" " * n + "a:\n" for n in range(1000)), 32, "nested deeper than 30"),
    "nested list items": ("- " * 100_000 + "a", 1, "nested deeper than 30"),
    "many values": ("name: [" + "a," * 200_000 + "]", 1, "more than 20000 values"),
    "many documents": (GOOD + "---\n" * 1000, 12, "a second document"),
    "base 60, short": (
        GOOD + "grace: 1:30\n",
        12,
        "1:30 is a number to the base 60 in YAML 1.1; quote it if it is a text",
    ),
    "base 60 with a point": (GOOD + "grace: 1:30.5\n", 12, "as 1h30m or 90s"),
    "base 60, negative": (GOOD + "x: [-1:30]\n", 12, "-1:30 is a number to the base 60"),
    "base 60 as a name": (GOOD + "1:30: x\n", 12, "1:30 is a number to the base 60"),
    "base 8": (GOOD + "grace: 010\n", 12, "010 is a number to the base 8 in YAML 1.1; write 10, or quote it"),
    "base 8, zero": (GOOD + "grace: 00\n", 12, "00 is a number to the base 8 in YAML 1.1; write 0, or quote it"),
    "base 60": (f"name: 1{':1' * 400_000}", 1, "a value of 800001 characters"),
    "digits of a value": (f"name: {'1' * 500_000}", 1, "a value of 500000 characters"),
    "a tag": ("name: !!python/object/apply:os.system [id]", 1, "tag"),
    "a tag of a text": ("name: !!python/name:os.system x", 1, "tag"),
    "no timestamp": ("name: !!timestamp x", 1, "'x' is not a value"),
    "binary": ("name: !!binary aGk=", 1, "tag"),
    "a long field": (f"? {'n' * 500_000}\n: x\n{GOOD}", 1, "unknown field"),
    "a long name": (GOOD.replace("counts", "n" * 500_000), 1, "must match"),
    "a long schedule": (GOOD + f"schedule: '{'0,' * 100_000}0 0 * * *'\n", None, "schedule"),
    "a long duration": (GOOD + f"grace: {'1h' * 200_000}\n", 12, None),
    "a duration of digits": (GOOD + f"grace: '{'9' * 5000}h'\n", 12, None),
    "a time of digits": (GOOD.replace("2013-01-01", f"'{'9' * 5000}'"), 5, None),
    "many columns": (GOOD.replace("[state]", f"[{', '.join(f'c{n}' for n in range(15_000))}]"), 4, "in no other field"),
    "wide": (WIDE, None, None),
    "wide, renamed": (WIDE.replace(": string", ": {was: x}"), None, "was x, and c1 too"),
    "wide, with a long condition": (
        WIDE.replace("gone = TRUE", " OR ".join(f"c{n} = 'x'" for n in range(4000))),
        None,
        None,
    ),
    "many timelines": (WIDE + f"timelines: [{', '.join(f'c{n}' for n in range(5000))}]", None, "timeline c0 is not"),
    "many units": (
        WIDE.replace(
            "envelope: upsert", "envelope: debezium, units: {" + ", ".join(f"c{n}: ms" for n in range(3000)) + "}"
        ),
        None,
        None,
    ),
    "tab": (GOOD + "\tgrace: 2h", 12, "not YAML"),
    "another encoding": (GOOD.encode("utf-16"), 1, "not UTF-8"),
    "Latin-1": (GOOD.encode() + "# naïve".encode("latin-1"), 12, "not UTF-8"),
    "too large": (b"#" * (2**20 + 1), None, "more than 1048576 bytes"),
    "written twice as a value": ("columns: {1: int, 0x1: int}\n" + GOOD, 1, "'0x1' is written twice"),
    "a merge of nothing": ("<<: 5\n" + GOOD, 1, "takes over the fields of a mapping"),
}


def refusal(path: Path) -> InvalidUsage | None:
    """Why a file is refused; None if it is right."""
    try:
        load(path)
    except InvalidUsage as error:
        return error
    return None


@pytest.mark.parametrize(("content", "line", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(
    tmp_path: Path, content: str | bytes, line: int | None, says: str | None
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_bytes(content.replace("counts", "wrong").encode() if isinstance(content, str) else content)
    error = refusal(wrong)
    if says is None and error is None:
        return  # it is right, and was read in bounded time
    message = str(error)
    assert message.startswith(f"{wrong}:{line}: " if line else f"{wrong}:"), message
    assert says is None or says in message
    assert len(message) <= 1000
    assert "\n" not in message


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (fifo, "it is a FIFO, not a file"),
        (listening, "cannot be read"),
        (Path.mkdir, "it is a folder, not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a file"),
        (lambda path: path.symlink_to("nothing"), "there is no such file (a broken link)"),
        (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["FIFO", "socket", "folder", "device", "broken link", "link to itself"],
)
def test_what_is_no_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], says: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    make(tmp_path / "wrong.yaml")
    assert says in str(refusal(tmp_path / "wrong.yaml"))


def test_a_file_nobody_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.yaml"
    path.write_text(GOOD)
    path.chmod(0)
    nobody = 65534
    me = os.geteuid()
    os.seteuid(me or nobody)  # root may read everything
    try:
        with pytest.raises(InvalidUsage, match="cannot be read: Permission denied"):
            load(path)
    finally:
        os.seteuid(me)


@pytest.mark.parametrize("name", ["größe.yaml", "数.yaml", "with space.yaml", "[1]{x}.yaml", "-rf.yml"])
def test_a_file_may_be_called_anything_and_a_link_to_it_is_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").write_text("\ufeff" + GOOD)
    (tmp_path / name).symlink_to("elsewhere")
    assert load(tmp_path / name).name == "counts"


def test_what_is_written_once_may_be_named_again(tmp_path: Path) -> None:
    path = tmp_path / "counts.yaml"
    text = GOOD.replace("key: [id]", "key: &key [id]").replace("columns: {", "columns: {<<: {gone: int}, ")
    path.write_text(text.replace("{id: int, ", "{id: int, ") + "timelines: []\n")
    assert load(path).key[0].name == "id"
    path.write_text(
        GOOD.replace("[state]", "&value [state]").replace("time: arrival", "time: arrival\ntimelines: *value")
    )
    with pytest.raises(InvalidUsage, match=r":7: timeline state is not a timestamp"):
        load(path)
