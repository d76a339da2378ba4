"""Checks of arguments, texts that docstrings share, and what every room needs of Python."""

__all__: list[str] = []
