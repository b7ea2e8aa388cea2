"""C51 ensembles with PER and with UPER, with one panel per game."""

from uper_plots.figures.atari_games import draw  # noqa: F401  (about.json names the two agents)
