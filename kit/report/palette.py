"""Colours that people who see few of them can tell apart (Okabe and Ito, 2008), the same on light and dark ground."""

from typing import Final

from evictstream.kit.report.columns import DrawnOutcome

TAINT: Final = "#E69F00"
SCHEDULED: Final = "#999999"
UPSTREAM: Final = "#CC79A7"
OUTCOME_COLOURS: Final = {
    DrawnOutcome.EVICTED: "#D55E00",
    DrawnOutcome.CANCELLED: "#3A9BD9",
    DrawnOutcome.OPEN: "#009E73",
}
