"""By key: a query, computed for some values of its local columns only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.locality import Block, Keys, located, wrapped
from tidemark.definition.recipe import TOUCHED, ByKey, InputShape
from tidemark.definition.relations import output_names
from tidemark.definition.resolve import names_of
from tidemark.definition.rows import source_of_changes


def by_key(whole: exp.Query, columns: Sequence[str], shapes: Mapping[str, InputShape]) -> ByKey:
    """The recipe of a resolved query that has local columns. `columns` are its own: what else it
    gives is hidden. Raises NotLocal if it has none."""
    tree = wrapped(whole, shapes)
    found = located(tree, shapes)
    named = {_text(keys): name for name, keys in reversed(list(found.columns.items())) if name in columns}
    names = [name for name in names_of(whole) if name in set(named.values())]
    expressions = [found.columns[name] for name in names]
    inputs = dict.fromkeys(block.input for block in found.blocks)
    blocks = {name: [block for block in found.blocks if block.input == name] for name in inputs}
    touched = {
        name: " UNION ".join(_touched(block, [keys[block] for keys in expressions]) for block in blocks[name])
        for name in inputs
    }
    clustered = {name: _clustered(shapes[name], blocks[name], expressions) for name in inputs}
    plain = {name: _plain(blocks[name], expressions) for name in inputs}
    for block in found.blocks:
        _restrict(block, [keys[block] for keys in expressions])
    named_only = {name: found for name, found in plain.items() if found}
    return ByKey(touched, text_of(tree), tuple(names), clustered, columns=named_only)


def _text(keys: Keys) -> tuple[str, ...]:
    return tuple(text_of(one) for one in keys.values())


def _touched(block: Block, expressions: Sequence[exp.Expr]) -> str:
    """The values that a block's changed rows have."""
    changed = exp.Select(expressions=[exp.alias_(one.copy(), f"k{at}") for at, one in enumerate(expressions)])
    for part in ("from_", "joins", "laterals", "where"):
        clause = block.select.args.get(part)
        if clause is not None:
            changed.set(part, [one.copy() for one in clause] if isinstance(clause, list) else clause.copy())
    source_of_changes(changed.args["from_"].this, ())
    return text_of(changed.distinct(copy=False))


def _plain(blocks: Sequence[Block], expressions: Sequence[Keys]) -> tuple[str, ...]:
    """The columns of an input that the values are, where its changed rows are asked for no more than these."""
    if len(blocks) != 1 or not is_plain(blocks[0].select):
        return ()
    nodes = [keys[blocks[0]].unnest() for keys in expressions]
    return tuple(one.name for one in nodes) if all(isinstance(one, exp.Column) for one in nodes) else ()


def is_plain(select: exp.Select) -> bool:
    """Whether a SELECT reads all rows of an input, as they are."""
    source = select.args.get("from_")
    others = any(select.args.get(part) for part in ("joins", "laterals", "where"))
    return source is not None and isinstance(source.this, exp.Table) and not others


def _restrict(block: Block, expressions: Sequence[exp.Expr]) -> None:
    """Of the block's rows only those with touched values."""
    same = [
        exp.NullSafeEQ(this=exp.column(f"k{at}", TOUCHED), expression=exp.paren(one.copy()))
        for at, one in enumerate(expressions)
    ]
    one = exp.select(exp.alias_(exp.Literal.number(1), "one")).from_(TOUCHED).where(exp.and_(*same), copy=False)
    block.select.where(exp.Exists(this=one), copy=False)


def _clustered(shape: InputShape, blocks: Sequence[Block], expressions: Sequence[Keys]) -> tuple[tuple[str, str], ...]:
    """The input's leading key columns that the values hold, each with the value's name; none where rows are laid out by
    something else."""
    if shape.laid_out_by:
        return ()
    found: list[tuple[str, str]] = []
    for column in shape.key:
        positions = [
            at for at, keys in enumerate(expressions) if all(_is_column(keys[block], block, column) for block in blocks)
        ]
        if not positions:
            break
        found.append((column, f"k{positions[0]}"))
    return tuple(found)


def _is_column(node: exp.Expr | None, block: Block, column: str) -> bool:
    """Whether an expression of a block's rows is a column of its input, be it through subqueries that show it."""
    source: exp.Expr = block.select.args["from_"].this
    while isinstance(node, exp.Column) and isinstance(source, exp.Subquery):
        inner = source.this
        if not isinstance(inner, exp.Select) or node.table != source.alias_or_name:
            return False
        if any(isinstance(one, exp.Aliases) for one in inner.selects):
            return False
        shown = {name: one.unalias() for name, one in zip(output_names(source), inner.selects, strict=True)}
        node, source = shown.get(node.name), inner.args["from_"].this
    return (
        isinstance(node, exp.Column)
        and isinstance(source, exp.Table)
        and ((node.table, node.name) == (source.alias_or_name, column))
    )
