"""Errors and warnings of ledgers."""

from __future__ import annotations


class LedgerError(ValueError):
    """Base of what a ledger refuses; :class:`BudgetExceededError` stands beside it.

    Examples
    --------
    >>> assert issubclass(LedgerError, ValueError)
    """


class UnknownDatasetError(LedgerError):
    """Raised where a ledger is opened for a data set that its storage does not know.

    Examples
    --------
    >>> assert issubclass(UnknownDatasetError, LedgerError)
    """


class BudgetChangedError(LedgerError):
    """Raised where a ledger is opened with another budget than the one that was set.

    Examples
    --------
    >>> assert issubclass(BudgetChangedError, LedgerError)
    """


class LedgerSchemaError(LedgerError):
    """Raised where a storage was written by a newer version of this package.

    Examples
    --------
    >>> assert issubclass(LedgerSchemaError, LedgerError)
    """


class LedgerStorageError(LedgerError):
    """Raised where the storage cannot be read or written; the cause is chained.

    Nothing is written then: a charge is one transaction.

    Examples
    --------
    >>> assert issubclass(LedgerStorageError, LedgerError)
    """


class LedgerWarning(UserWarning):
    """Warns of what spends nothing, such as a clock that went backwards, or an older ledger.

    Examples
    --------
    >>> assert issubclass(LedgerWarning, UserWarning)
    """
