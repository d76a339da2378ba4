"""Reports for people: sentences of a statement, and cards in HTML."""

__all__: list[str] = []
