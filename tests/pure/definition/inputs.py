"""Two inputs that definitions of the tests read: flights, which are appended, and carriers, of one value a key."""

from __future__ import annotations

from tidemark.definition.analysed import analysed
from tidemark.definition.recipe import InputShape, Recipe
from tidemark.model.collection import Column, parse_type
from tidemark.model.derived import Refresh, Validity


def columns(text: str) -> tuple[Column, ...]:
    """Columns of a text such as `id:int name:string`."""
    return tuple(Column(name, parse_type(of)) for name, of in (one.split(":") for one in text.split()))


FLIGHTS = InputShape(
    "flights",
    columns("carrier:string id:int Delay:int miles:float at:timestamp day:date fare:decimal(12,2) tags:json"),
    ("carrier", "id"),
)
CARRIERS = InputShape("carriers", columns("code:string name:string rank:int"), ("code",), one_value=True)
INPUTS = (FLIGHTS, CARRIERS)


def recipe(select: str, refresh: Refresh = Refresh.AUTO, validity: Validity | None = None) -> Recipe:
    """What the tests' inputs make of a select."""
    return analysed(select, INPUTS, refresh, validity)
