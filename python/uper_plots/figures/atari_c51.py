"""C51 ensembles with PER and with UPER, a panel a game."""

from uper_plots.figures.atari_games import draw  # noqa: F401  (about.json names the two agents)
