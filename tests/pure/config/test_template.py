"""Path templates: the variables of an interval, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.config.template import check, render
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
        ("/x/{{ ds[:4] }}/{{ ds[5:7] }}/{{ ds[-2:] }}", "/x/2013/01/02"),
        ("/x/{{ ds | replace('-', '/') }}{# the day #}", "/x/2013/01/02"),
        ("/x/{{ data_interval_end | ds_nodash }}/{{ data_interval_end | ts_nodash }}", "/x/20130102/20130102T080000"),
        ("/x/{{ data_interval_start.strftime('%b-%-d') | lower }}", "/x/jan-2"),
        ("/x/{{ data_interval_start.year }}/{{ data_interval_start.month }}", "/x/2013/1"),
        ("/x/{% raw %}{{ ds }}{% endraw %}", "/x/{{ ds }}"),
        ("/x/{{ data_interval_start }}", "/x/2013-01-02 07:00:00+00:00"),
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
        ("/x/{{ ds + 1 }}", "cannot be rendered: arithmetic is not allowed"),
        ("/x/{{ dss }}", r"'dss' is undefined; .*; did you mean 'ds'\?"),
        ("/x/{% if ds %}a{% endif %}", "{% if %} is not allowed"),
        ("/x/{% set a = ds %}", "{% assign %} is not allowed"),
        ("/x/{{ ds if lower else ts }}", "cannot be rendered: if is not allowed"),
        ("/x/{{ ds | length }}", "there is no filter 'length'; valid are ds, ds_nodash, ts"),
        ("/x/{{ ds | uper }}", "there is no filter 'uper'; did you mean 'upper'"),
        ("/x/{{ ds | ds_nodash }}", "filter ds_nodash is for data_interval_start and data_interval_end"),
        ("/x/{{ ds | replace('-') }}", "filter replace takes 2 arguments, not 1"),
        ("/x/{{ ds[lower:] }}", "the bounds of a slice must be whole numbers"),
        ("/x/{{ ds[0] }}", "an index that is no slice"),
        ("/x/{{ lower[:2] }}", "only a text has slices"),
        ("/x/{{ data_interval_start.strftime(ds) }}", "an argument must be a text in quotes"),
        ("/x/{{ data_interval_start.replace('1') }}", "a time has no method 'replace' here"),
        ("/x/{{ data_interval_start.yaer }}", "a time has no attribute 'yaer' here; did you mean 'year'"),
        ("/x/{{ data_interval_start.tzinfo }}", "a time has no attribute 'tzinfo'"),
        ("/x/{{ [ds] }}", "list is not allowed"),
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
    assert render("{{ landing }}/{{ ds }}", DAY, "/in/{{ ds }}") == "/in/{{ ds }}/2013-01-02"
