"""Where the boxes of a graph of collections are, and the lines between them: inputs left of what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, GAP_X, GAP_Y = 260, 70, 18
"""Of a box; between columns; between boxes of one column."""
BEND = 14
"""Height kept free where a line passes a column between two boxes."""
SWEEPS = 4
"""How often the order within columns is improved."""

Node = tuple[str, ...]
"""A collection, `(name,)`, or the place where a line passes a column: `(input, derived, column)`."""


@dataclass(frozen=True)
class Edge:
    """An input of a derived collection; `port` is where at its box the line arrives, from the box's top."""

    source: str
    target: str
    port: float


@dataclass(frozen=True)
class Drawn:
    """The upper left corner of each box, the points each line passes, and the size of it all."""

    boxes: Mapping[str, tuple[float, float]]
    lines: Mapping[Edge, Sequence[tuple[float, float]]]
    width: float
    height: float


def drawn(heights: Mapping[str, float], edges: Sequence[Edge]) -> Drawn:
    """Boxes of these heights in columns, each right of all its inputs. The same for the same input, whatever order."""
    columns = _columns(sorted(heights), edges)
    chains = {edge: _chain(edge, columns) for edge in sorted(edges, key=lambda edge: (edge.source, edge.target))}
    nodes: dict[Node, int] = {(name,): at for name, at in sorted(columns.items())}
    for chain in chains.values():
        nodes |= {node: columns[node[0]] + at for at, node in enumerate(chain[:-1])}
    layers: list[list[Node]] = [[] for _ in range(max(nodes.values(), default=-1) + 1)]
    for node, at in nodes.items():
        layers[at].append(node)
    _order(layers, chains.values())
    tops = _tops(layers, chains.values(), lambda node: heights[node[0]] if len(node) == 1 else BEND)
    lefts = {node: nodes[node] * (WIDTH + GAP_X) for node in nodes}
    lines = {
        edge: [
            (lefts[chain[0]] + WIDTH, tops[chain[0]] + heights[edge.source] / 2),
            *(point for node in chain[1:-1] for point in _through(lefts[node], tops[node] + BEND / 2)),
            (lefts[chain[-1]], tops[chain[-1]] + edge.port),
        ]
        for edge, chain in chains.items()
    }
    boxes = {name: (float(lefts[name,]), tops[name,]) for name in heights}
    height = max((tops[name,] + heights[name] for name in heights), default=0)
    return Drawn(boxes, lines, len(layers) * (WIDTH + GAP_X) - GAP_X if layers else 0, height)


def _columns(names: Iterable[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The column of each: right of all its inputs. What is computed from itself is where it is met first."""
    inputs: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        inputs[edge.target].append(edge.source)
    columns: dict[str, int] = {}
    for name in inputs:
        waiting, entered = [name], set[str]()
        while waiting:
            top = waiting[-1]
            left = [one for one in inputs[top] if one not in columns and one not in entered]
            if top in columns or not left:
                columns.setdefault(top, 1 + max((columns.get(one, -1) for one in inputs[top]), default=-1))
                waiting.pop()
            else:
                entered.add(top)
                waiting += left
    return columns


def _chain(edge: Edge, columns: Mapping[str, int]) -> list[Node]:
    """The nodes a line passes, from its input to what is made of it."""
    between = range(columns[edge.source] + 1, columns[edge.target])
    return [(edge.source,), *((edge.source, edge.target, str(at)) for at in between), (edge.target,)]


def _order(layers: list[list[Node]], chains: Iterable[Sequence[Node]]) -> None:
    """Order each column by where the neighbours of its nodes are, so that few lines cross."""
    near: dict[Node, list[Node]] = {node: [] for layer in layers for node in layer}
    for chain in chains:
        for left, right in pairwise(chain):
            near[left].append(right)
            near[right].append(left)
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            place = {node: at / max(1, len(one)) for one in layers for at, node in enumerate(one)}
            middle = {
                node: sum(place[one] for one in near[node]) / len(near[node]) if near[node] else place[node]
                for node in layer
            }
            layer.sort(key=lambda node: (middle[node], node))


def _tops(
    layers: list[list[Node]], chains: Iterable[Sequence[Node]], height_of: Callable[[Node], float]
) -> dict[Node, float]:
    """Where each node begins: as high as its left neighbours are on average, below what is above it."""
    left: dict[Node, list[Node]] = {}
    for chain in chains:
        for one, other in pairwise(chain):
            left.setdefault(other, []).append(one)
    tops: dict[Node, float] = {}
    for layer in layers:
        bottom = 0.0
        for node in layer:
            wanted = [tops[one] + height_of(one) / 2 for one in left.get(node, ()) if one in tops]
            middle = sum(wanted) / len(wanted) - height_of(node) / 2 if wanted else bottom
            tops[node] = max(bottom, middle)
            bottom = tops[node] + height_of(node) + GAP_Y
    least = min(tops.values(), default=0.0)
    return {node: top - least for node, top in tops.items()}


def _through(left: float, middle: float) -> list[tuple[float, float]]:
    return [(left, middle), (left + WIDTH, middle)]
