"""One module per figure, with the figure's name ('_' for '-') and a function draw(folder) -> Figure."""
