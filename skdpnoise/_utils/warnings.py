"""The category of our own warnings, and what was said already."""

from typing import Any
from weakref import WeakKeyDictionary


class PrivacyWarning(UserWarning):
    """Warns that the noise hides what the model would need, or that something is not private.

    Examples
    --------
    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """


class Once:
    """Remembers of each object that lives, as long as it does, all that was said about it."""

    def __init__(self) -> None:
        self._said: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()

    def is_new(self, about: Any, said: object) -> bool:
        try:
            known = self._said.setdefault(about, set())
        except TypeError:  # an object that cannot be remembered is told again
            return True
        new = said not in known
        known.add(said)
        return new
