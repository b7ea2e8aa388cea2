"""Median over games for the same ensemble under different priorities."""

from uper_plots.figures.atari_median import draw  # noqa: F401  (about.json names no single games)
