"""What all private estimators share: a sealed way into a fit, and errors that show no value.

Nothing here is public. ``private_fit`` is the one way into a private fit, and uses the other files.
"""

__all__: list[str] = []
