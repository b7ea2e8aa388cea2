# The commands of the project. `make help` lists them.

export PATH := $(CURDIR)/.venv/bin:$(PATH)
SOURCES = git ls-files -co --exclude-standard '*.h' '*.cc' '*.cu' '*.cuh'

.DEFAULT_GOAL := help
.PHONY: help setup build wheel demo docs test soak format lint clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: SETUP_FLAGS = --without-atari
DEMO = runs/demo

demo: build  ## train UPER on MinAtar breakout (about 3 minutes), play it against a random policy, draw the curves
	build/uper train --env minatar/breakout --agent qr-ens-uper --frames 200000 --out $(DEMO) \
	  --set log_every_frames=2000 --set evaluate_every_frames=20000
	build/uper evaluate $(DEMO) --episodes 100 --against random
	@echo "curves: $(DEMO)/plots"

build: setup  ## build the program: build/uper
	@cmake --preset release --log-level=WARNING -DUPER_TESTS=OFF >/dev/null
	@cmake --build --preset release
	@ln -sfn release/uper build/uper

wheel: setup  ## wheels and source distribution of the Python package in dist/, tested in clean venvs
	@python3 tools/wheels.py

docs: build  ## write the tables of docs/ that the program generates
	@python tools/write_docs.py

test: setup  ## every test: release, sanitizers, format, layers, Python
	@python tools/run_tests.py

soak: SETUP_FLAGS = --soak
soak: setup  ## the long campaigns (hours)
	@python tools/run_tests.py --soak

setup:  ## install what is missing (system packages, .venv, the Atari emulator)
	@tools/setup.sh $(SETUP_FLAGS)

format: setup  ## clang-format all sources in place
	@$(SOURCES) | xargs clang-format -i

lint: setup  ## clang-tidy over all sources, the checks of layers and of words
	@python tools/check_layers.py
	@python tools/check_words.py
	@cmake --preset lint --log-level=WARNING >/dev/null
	@python tools/run_lint.py

clean:  ## remove what was built (keeps .venv and results)
	rm -rf build
