"""Draws the figures of `uper reproduce` from the CSV files it wrote, and nothing else."""
