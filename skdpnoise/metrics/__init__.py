"""Scores of models on private records."""

__all__: list[str] = []
