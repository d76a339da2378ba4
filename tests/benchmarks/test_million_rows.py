"""What the growth of a fit is judged by."""

from benchmarks._million_rows import _grown, fits


def measured(name, n, microseconds, extra):
    """One line of the table of growth; `extra` in bytes per row."""
    return {
        "fit": name,
        "n": n,
        "microseconds per row": microseconds,
        "extra memory / X": extra / 200.0,
        "extra bytes per row": extra,
    }


def test_time_grows_with_the_rows_and_memory_with_the_table_or_with_the_rows():
    few, many = measured("PCA", 1_000, 2.0, 8.0), measured("PCA", 4_000, 3.0, 8.0)
    assert _grown(few, many) == [
        ("time per row, many / few", 1.5, 1.3),
        ("extra memory / X", 0.04, 0.05),
    ]
    few, many = (measured("regressor", n, 2.0, 24.0) for n in (1_000_000, 4_000_000))
    assert _grown(few, many) == [
        ("time per row, many / few", 1.0, 1.3),
        ("extra bytes per row", 24.0, 24.0 + 16.0),
    ]


def test_all_kinds_of_estimators_are_measured():
    kinds = {name.partition(",")[0] for name in fits()}
    assert kinds == {"regressor", "classifier", "standard scaler", "robust scaler", "PCA"}
