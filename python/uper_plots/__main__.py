"""python -m uper_plots FIGURE FOLDER: draws FOLDER/figure.png and .svg from FOLDER's CSV files."""

import importlib
import sys

from uper_plots import style


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    figure_id, folder = sys.argv[1:]
    module = importlib.import_module("uper_plots.figures." + figure_id.replace("-", "_"))
    style.use_style()
    style.save(module.draw(folder), folder)


if __name__ == "__main__":
    main()
