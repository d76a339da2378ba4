"""What a report says: sentences of a statement, and cards in HTML."""

__all__: list[str] = []
