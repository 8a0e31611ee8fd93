"""Prices, stock and reports of a small shop."""
