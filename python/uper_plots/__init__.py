"""Draws the figures of `uper reproduce` from its CSV files alone."""

import sys


def _leave_interrupts_to_uper(kind, error, trace):
    if not issubclass(kind, KeyboardInterrupt):  # `uper` itself reports an interruption in one line
        sys.__excepthook__(kind, error, trace)


if sys.argv[:1] == ["-m"]:  # run as a program, not imported by one
    sys.excepthook = _leave_interrupts_to_uper
