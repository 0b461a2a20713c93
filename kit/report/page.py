"""The report as one page for a browser: drawn by Bokeh, everything within the file, nothing from a network.

Names of pods and taints come from a cluster's users. They are data of the page, never markup: Bokeh draws them on a
canvas and in text nodes, and the page's own script sets text only.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from bokeh.embed import json_item
from bokeh.layouts import column, row
from bokeh.models import (
    AdaptiveTicker,
    BoxZoomTool,
    CDSView,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    DataTable,
    DateFormatter,
    DatetimeTickFormatter,
    HoverTool,
    IndexFilter,
    InlineStyleSheet,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    Select,
    Span,
    TableColumn,
    TapTool,
    TextInput,
    WheelPanTool,
    WheelZoomTool,
)
from bokeh.plotting import figure
from bokeh.resources import INLINE
from bokeh.transform import factor_cmap
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from evictstream.kit.report.columns import Drawn, DrawnOutcome, counted, drawn
from evictstream.kit.report.palette import OUTCOME_COLOURS, SCHEDULED, TAINT, UPSTREAM
from evictstream.models.instants import instant_text

if TYPE_CHECKING:
    from evictstream.kit.replay.replay_report import ReplayReport
    from evictstream.kit.report.timeline import Timeline

NODES_SHOWN: Final = 30
"""Rows of the timeline at first; one scrolls to the others."""

ROW_PIXELS: Final = 34
ANY: Final = "all"
TIMES: Final = "%H:%M:%S.%3N"


def page(timeline: Timeline, report: ReplayReport, *, title: str) -> str:
    """Return the whole page.

    Args:
        timeline: what is drawn.
        report: of the same replay, for its counts and the other run.
        title: of the page, such as the name of the recording.
    """
    shown = drawn(timeline)
    stories = [timeline.stories.get(eviction.eviction_id, []) for eviction in timeline.evictions]
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string((files(__package__) / "page.html").read_text())
    return template.render(
        title=title,
        clusters=", ".join(sorted({cluster for _, cluster, _ in shown.nodes})) or "-",
        begin=instant_text(timeline.first_us),
        end=instant_text(timeline.last_us),
        counts=[(name.strip(), value) for name, value in report.rows() if name != "recorded"],
        against=report.against,
        same=report.same,
        differences=len(report.differences),
        left_out=timeline.left_out,
        resources=Markup(INLINE.render()),  # noqa: S704 - Bokeh's own scripts
        item=_embedded(json_item(_layout(shown, timeline, report))),
        stories=base64.b64encode(gzip.compress(json.dumps(stories).encode(), mtime=0)).decode(),
    )


def _embedded(data: object) -> Markup:
    """Return JSON that ends no element of a page, whatever is in it."""
    text = json.dumps(data, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704 - escaped


def _layout(shown: Drawn, timeline: Timeline, report: ReplayReport) -> Any:
    evictions = ColumnDataSource(shown.evictions, name="evictions")
    chosen = IndexFilter(indices=list(range(len(timeline.evictions))))
    view = CDSView(filter=chosen)
    times = Range1d(timeline.first_us / 1_000, max(timeline.last_us, timeline.first_us + 1_000_000) / 1_000)
    parts = [
        _over_time(shown, report, times),
        _timeline(shown, timeline, evictions, view, times),
        _filters(evictions, chosen),
        _table(evictions, view),
    ]
    if report.differences:
        parts.append(_differences(report))
    return column(*parts, sizing_mode="stretch_width", name="report")


def _figure(title: str, height: int, times: Range1d, **more: Any) -> Any:
    made = figure(
        title=title,
        height=height,
        x_range=times,
        x_axis_type="datetime",
        sizing_mode="stretch_width",
        output_backend="webgl",
        toolbar_location="right",
        **more,
    )
    made.xaxis.formatter = DatetimeTickFormatter(
        milliseconds=TIMES, seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M", hourmin="%H:%M", hours="%H:%M"
    )
    made.toolbar.logo = None
    return made


def _over_time(shown: Drawn, report: ReplayReport, times: Range1d) -> Any:
    seconds = shown.bin_seconds
    made = _figure(
        f"Evictions in each {seconds} s" if seconds > 1 else "Evictions in each second",
        220,
        times,
        tools=[PanTool(dimensions="width"), WheelZoomTool(dimensions="width"), ResetTool(), SaveTool()],
        name="over_time",
    )
    made.yaxis.axis_label = "pods"
    source = ColumnDataSource(shown.bins)
    series = (
        ("scheduled", SCHEDULED, "dotted"),
        ("evicted", OUTCOME_COLOURS[DrawnOutcome.EVICTED], "solid"),
        ("cancelled", OUTCOME_COLOURS[DrawnOutcome.CANCELLED], "dashed"),
    )
    for name, colour, dash in series:
        made.step(
            "at", name, source=source, mode="after", color=colour, line_dash=dash, line_width=2, legend_label=name
        )
    if report.against is not None:
        points = counted(_left_there_us(report), seconds)
        made.step(
            [at for at, _ in points],
            [count for _, count in points],
            mode="after",
            color=UPSTREAM,
            line_dash="dashdot",
            line_width=2,
            legend_label=f"evicted, {report.against}",
        )
    made.y_range.start = 0
    made.legend.orientation = "horizontal"
    made.legend.location = "top_left"
    made.legend.click_policy = "hide"
    made.add_layout(made.legend[0], "above")
    return made


def _left_there_us(report: ReplayReport) -> Iterator[int]:
    """Give when pods left in the other run: as here, where the two do not differ about the pod."""
    differing = {(difference.first.cluster, difference.first.pod_uid) for difference in report.differences}
    for difference in report.differences:
        if difference.there is not None:
            yield difference.there.at_us
    for eviction in report.evictions:
        if eviction.issued_at_us is not None and (eviction.cluster, eviction.pod_uid) not in differing:
            yield eviction.issued_at_us


def _timeline(shown: Drawn, timeline: Timeline, evictions: ColumnDataSource, view: CDSView, times: Range1d) -> Any:
    count = len(shown.nodes)
    rows = min(max(count, 3), NODES_SHOWN)
    made = _figure(
        "Nodes: taints above; below, pods from the taint to their eviction or its cancellation",
        rows * ROW_PIXELS + 90,
        times,
        y_range=Range1d(count - rows - 0.5, count - 0.5, bounds=(-0.5, max(count, 3) - 0.5)),
        tools=[
            PanTool(),
            BoxZoomTool(),
            WheelPanTool(dimension="height"),
            WheelZoomTool(dimensions="width"),
            TapTool(),
            ResetTool(),
            SaveTool(),
        ],
        name="timeline",
    )
    made.toolbar.active_scroll = made.select_one(WheelPanTool)
    names = [f"{zone} · {node}" if zone else node for zone, _, node in shown.nodes]
    made.yaxis.ticker = AdaptiveTicker(min_interval=1, mantissas=[1, 2, 5], desired_num_ticks=NODES_SHOWN)
    made.yaxis.formatter = CustomJSTickFormatter(args={"names": names}, code="return names[tick] ?? ''")
    made.ygrid.visible = False
    for number in range(1, count):
        if shown.nodes[number][:2] != shown.nodes[number - 1][:2]:
            made.add_layout(Span(location=number - 0.5, dimension="width", line_width=1, line_color="#888888"))
    for silence in timeline.silences:
        made.quad(
            silence.start_us / 1_000,
            silence.end_us / 1_000,
            count,
            -1,
            color="#888888",
            alpha=0.15,
            legend_label="nothing recorded",
        )
    taints = made.quad(
        "start", "end", "top", "bottom",
        source=ColumnDataSource(shown.taints), fill_color=TAINT, line_color=None, legend_label="taint",
    )  # fmt: skip
    colours = factor_cmap("outcome", [OUTCOME_COLOURS[each] for each in DrawnOutcome.ALL], list(DrawnOutcome.ALL))
    pods = made.quad(
        "start", "end", "top", "bottom",
        source=evictions, view=view, fill_color=colours, line_color=None, fill_alpha=0.55, nonselection_fill_alpha=0.2,
        legend_group="outcome",
    )  # fmt: skip
    made.scatter(
        "deadline",
        "y",
        source=evictions,
        view=view,
        marker="dash",
        angle=1.5708,
        size=7,
        line_color="#888888",
        legend_label="deadline",
    )
    for name, marker, outcome in (
        ("evicted", "triangle", DrawnOutcome.EVICTED),
        ("cancelled", "x", DrawnOutcome.CANCELLED),
    ):
        made.scatter(
            name, "y", source=evictions, view=view, marker=marker, size=7,
            line_color=OUTCOME_COLOURS[outcome], fill_color=OUTCOME_COLOURS[outcome], legend_label=f"{name} at",
        )  # fmt: skip
    clock = dict.fromkeys(("@start", "@end", "@deadline"), "datetime")
    of_taint = [("node", "@node"), ("taint", "@taint"), ("from", "@start{%T}"), ("to", "@end{%T}")]
    of_pod = [("pod", "@namespace/@pod"), ("taint", "@taint"), ("outcome", "@outcome (@why)"), ("due", "@deadline{%T}")]
    for renderer, tooltips in ((taints, of_taint), (pods, of_pod)):
        made.add_tools(HoverTool(renderers=[renderer], tooltips=tooltips, formatters=clock))
    made.legend.orientation = "horizontal"
    made.add_layout(made.legend[0], "above")
    return made


_STYLE: Final = """
:host { color: var(--text); }
.bk-input { background: var(--paper); color: var(--text); border-color: var(--line); }
.slick-header-column, .slick-header-columns { background: var(--raised) !important; color: var(--text); }
.slick-row { background: var(--paper) !important; color: var(--text); }
.slick-row.odd { background: var(--raised) !important; }
.slick-cell.selected { background: var(--chosen) !important; }
.slick-cell, .slick-header-column { border-color: var(--line) !important; }
"""


def _filters(evictions: ColumnDataSource, chosen: IndexFilter) -> Any:
    def options(name: str) -> list[str]:
        values = sorted({str(value) for value in evictions.data[name]} - {""})
        return [ANY, *values[:1_000]]  # a longer list is hard to scroll; the text field finds the others

    style = InlineStyleSheet(css=_STYLE)
    text = TextInput(title="Pod, node or taint", name="text", stylesheets=[style], width=260)
    choices = {
        name: Select(title=name, value=ANY, options=options(name), name=name, stylesheets=[style], width=180)
        for name in ("outcome", "namespace", "zone", "node")
    }
    script = CustomJS(
        args={"source": evictions, "chosen": chosen, "text": text, **choices},
        code=(files(__package__) / "filter.js").read_text(),
    )
    for widget in (text, *choices.values()):
        widget.js_on_change("value_input" if widget is text else "value", script)
    return row(text, *choices.values(), sizing_mode="stretch_width", name="filters")


def _table(evictions: ColumnDataSource, view: CDSView) -> DataTable:
    times: Callable[[], DateFormatter] = lambda: DateFormatter(format=TIMES, nan_format="", null_format="")  # noqa: E731
    columns = [
        TableColumn(field="namespace", title="namespace", width=110),
        TableColumn(field="pod", title="pod", width=260),
        TableColumn(field="node", title="node", width=140),
        TableColumn(field="zone", title="zone", width=90),
        TableColumn(field="taint", title="taint", width=260),
        TableColumn(field="outcome", title="outcome", width=90),
        TableColumn(field="why", title="why", width=140),
        TableColumn(field="start", title="since", width=100, formatter=times()),
        TableColumn(field="deadline", title="deadline", width=100, formatter=times()),
        TableColumn(field="evicted", title="evicted", width=100, formatter=times()),
        TableColumn(field="cancelled", title="cancelled", width=100, formatter=times()),
        TableColumn(field="attempts", title="attempts", width=70),
    ]
    return DataTable(
        source=evictions,
        view=view,
        columns=columns,
        height=380,
        sizing_mode="stretch_width",
        index_position=None,
        reorderable=False,
        fit_columns=False,
        stylesheets=[InlineStyleSheet(css=_STYLE)],
        name="table",
    )


def _differences(report: ReplayReport) -> DataTable:
    differences = report.differences
    data = {
        "what": [str(one.kind) for one in differences],
        "pod": [one.first.name for one in differences],
        "node": [one.first.node for one in differences],
        "here": [instant_text(one.here.at_us) if one.here else "" for one in differences],
        "there": [instant_text(one.there.at_us) if one.there else "" for one in differences],
        "row": [str((one.reason and one.reason.row) or "") for one in differences],
        "reason": [one.reason.text if one.reason else "" for one in differences],
    }
    widths = {"what": 90, "pod": 260, "node": 140, "here": 210, "there": 210, "row": 50, "reason": 420}
    return DataTable(
        source=ColumnDataSource(data),
        columns=[TableColumn(field=name, title=name, width=width) for name, width in widths.items()],
        height=260,
        sizing_mode="stretch_width",
        index_position=None,
        reorderable=False,
        fit_columns=False,
        stylesheets=[InlineStyleSheet(css=_STYLE)],
        name="differences",
    )
