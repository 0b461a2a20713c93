"""Dashboards as Grafana imports them."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any, Final

from tests.deploy.monitoring.selectors import meanings

_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

_COLUMNS: Final = 24
"""Of Grafana's grid."""

_PANELS_IN_ROW: Final = 3
_PANEL_HEIGHT: Final = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Panel:
    """A diagram over time.

    Attributes:
        title: what it shows.
        unit: as Grafana names it: `s`, `short`, `bytes`, `ops`, `percentunit`, `dateTimeAsIso`.
        queries: PromQL by legend, which may name labels: `{{cluster}}`.
    """

    title: str
    unit: str
    queries: dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """What a reader of a dashboard chooses.

    Attributes:
        label: the label whose values there are to choose from; also its name.
        series: the metric that has them.
    """

    label: str
    series: str


@dataclasses.dataclass(frozen=True, slots=True)
class Board:
    """One dashboard.

    Attributes:
        title: behind `evictstream / `.
        variable: what its queries are limited to; none for all.
        rows: panels by the heading above them.
    """

    title: str
    variable: Variable | None
    rows: dict[str, tuple[Panel, ...]]


def dashboard(board: Board) -> str:
    """Make the text of a dashboard's file."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in board.rows.items():
        place = _place(0, y, _COLUMNS, 1)
        panels.append({"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place})
        y += 1
        for number, panel in enumerate(row):
            line, column = divmod(number, _PANELS_IN_ROW)
            width = _COLUMNS // _PANELS_IN_ROW
            panels.append(_panel(panel, _place(column * width, y + line * _PANEL_HEIGHT, width, _PANEL_HEIGHT)))
        y += -(-len(row) // _PANELS_IN_ROW) * _PANEL_HEIGHT
    body = {
        "uid": f"evictstream-{board.title.lower()}",
        "title": f"evictstream / {board.title}",
        "tags": ["evictstream"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": _variables(board.variable)},
        "links": [
            {
                "type": "dashboards",
                "title": "evictstream",
                "tags": ["evictstream"],
                "asDropdown": True,
                "keepTime": True,
            }
        ],
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }
    return json.dumps(body, indent=1) + "\n"


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": " ".join(dict.fromkeys(itertools.chain.from_iterable(map(meanings, panel.queries.values())))),
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": _DATASOURCE, "expr": query, "legendFormat": legend}
            for number, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _variables(variable: Variable | None) -> list[dict[str, Any]]:
    datasource = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"}
    if variable is None:
        return [datasource]
    query = f"label_values({variable.series}, {variable.label})"
    chosen = {
        "type": "query",
        "name": variable.label,
        "label": variable.label.capitalize(),
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": "variable"},
        "refresh": 2,  # at each change of the time range
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }
    return [datasource, chosen]


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}
