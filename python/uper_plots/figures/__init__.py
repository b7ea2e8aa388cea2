"""One module a figure, named as the figure with '_' for '-', with draw(folder) -> Figure."""
