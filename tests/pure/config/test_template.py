"""Path templates: the variables of an interval, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.config.template import check, render, root
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval

pytestmark = pytest.mark.pure

DAY = Interval(parse_instant("2013-01-02"), parse_instant("2013-01-03"))
HOUR = Interval(parse_instant("2013-01-02T07:00:00Z"), parse_instant("2013-01-02T08:00:00Z"))


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("{{ landing }}/flights/{{ ds }}/*.parquet", "/in/flights/2013-01-02/*.parquet"),
        ("{{landing}}/{{ ds_nodash }}/{{ hour }}.csv", "/in/20130102/07.csv"),
        ("/x/{{ ts }}", "/x/2013-01-02T07:00:00+00:00"),
        ("/x/{{ data_interval_start.strftime('%Y/%m/%d') }}", "/x/2013/01/02"),
        ("/x/{{ data_interval_end.isoformat() }}", "/x/2013-01-02T08:00:00+00:00"),
        ("/x/{{ lower }}-{{ upper }}", "/x/1357110000000000-1357113600000000"),
    ],
)
def test_the_variables(template: str, rendered: str) -> None:
    assert render(template, HOUR, "/in") == rendered
    check(template)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("/x/{{ day }}", "'day' is undefined; the variables are landing, ds,"),
        ("/x/{{ ds", "cannot be rendered: unexpected end of template"),
        ("/x/{{ ds.__class__.__mro__ }}", "unsafe"),
        ("/x/{{ 1 // 0 }}", "cannot be rendered"),
        ("/x/{{ ds + 1 }}", "cannot be rendered"),
        ("{{ '' }}", "is no path"),
        ("/x/{{ '\n' }}", "is no path"),
    ],
)
def test_what_cannot_be_rendered_is_refused_in_one_line(template: str, says: str) -> None:
    with pytest.raises(InvalidUsage, match=says) as caught:
        render(template, DAY, "/in")
    assert "\n" not in str(caught.value)


def test_a_path_out_of_the_landing_is_refused() -> None:
    with pytest.raises(InvalidUsage, match=r"holds \.\."):
        check("{{ landing }}/../{{ ds }}/*")


def test_the_landing_is_absolute_and_stands_for_itself() -> None:
    assert render("{{ landing }}/*", DAY, "in") == f"{Path.cwd()}/in/*"
    assert render("{{ landing }}/*", DAY, "s3://bucket/in/") == "s3://bucket/in/*"
    assert render("{{ landing }}/*.csv", DAY, "/in[1]") == "/in[[]1]/*.csv"


@pytest.mark.parametrize(
    ("template", "folder"),
    [
        ("{{ landing }}/flights/{{ ds }}/*.parquet", "/in/flights"),
        ("{{ landing }}/*.parquet", "/in"),
        ("{{ landing }}/flights-{{ ds }}/x.csv", "/in"),
        ("/data/a/b.csv", "/data/a"),
        ("{{ ds }}/x.csv", "/"),
    ],
)
def test_the_root_is_what_stands_before_anything_varies(template: str, folder: str) -> None:
    assert root(template, "/in") == folder


def test_the_root_on_s3() -> None:
    assert root("{{ landing }}/flights/{{ ds }}/*", "s3://b/in") == "s3://b/in/flights"
