"""The category of our own warnings."""


class PrivacyWarning(UserWarning):
    """Warns that the noise hides what the model would need, or that something is not private.

    Examples
    --------
    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """
