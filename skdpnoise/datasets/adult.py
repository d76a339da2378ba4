"""Adult, census income (Becker and Kohavi, 1996): two classes, 48,842 rows, 14 columns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from skdpnoise.datasets._sources import DataFile, Description, as_bunch, download, local_bytes
from skdpnoise.privacy.checks import check_option, pandas_for
from skdpnoise.privacy.shared_texts import shared_texts

__all__ = ["ADULT_CATEGORIES", "fetch_adult"]

_TRAIN = DataFile(
    name="adult.data",
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)
_TEST = DataFile(
    name="adult.test",
    sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
)
_N_TRAIN, _N_TEST = 32_561, 16_281
_N_RICH = 7_841  # of the training part

# As the description that comes with the data lists them, in its order and with its spelling.
ADULT_CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        *("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov"),
        *("State-gov", "Without-pay", "Never-worked"),
    ),
    "education": (
        *("Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm"),
        *("Assoc-voc", "9th", "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate"),
        *("5th-6th", "Preschool"),
    ),
    "marital-status": (
        *("Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed"),
        *("Married-spouse-absent", "Married-AF-spouse"),
    ),
    "occupation": (
        *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial"),
        *("Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical"),
        *("Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv"),
        "Armed-Forces",
    ),
    "relationship": (
        *("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "native-country": (
        *("United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany"),
        *("Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba"),
        *("Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico"),
        *("Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan"),
        *("Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand"),
        *("Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong"),
        "Holand-Netherlands",
    ),
}
"""Public categories of the nominal columns; a missing value, "?", is none of them."""

_DESCRIPTION = Description(
    title="""Adult (census income)

48,842 persons from the U.S. census of 1994, 32,561 of them in the training part; does a person
earn more than 50,000 USD a year?""",
    columns={
        "age": "years",
        "workclass": "nominal",
        "fnlwgt": "sampling weight of the census",
        "education": "nominal",
        "education-num": "level of education, 1 to 16",
        "marital-status": "nominal",
        "occupation": "nominal",
        "relationship": "nominal",
        "race": "nominal",
        "sex": "nominal",
        "capital-gain": "USD",
        "capital-loss": "USD",
        "hours-per-week": "hours",
        "native-country": "nominal",
        "class": 'target: "<=50K" or ">50K"',
    },
    notes="""\
A missing value of a nominal column is "?". Categories: skdpnoise.datasets.ADULT_CATEGORIES.

Source: Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, 1996,
doi:10.24432/C5XW20. CC BY 4.0.
""",
)


@shared_texts
def fetch_adult(
    *,
    subset: str = "all",
    data_home: str | os.PathLike[str] | None = None,
    as_frame: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Load the Adult data, census income (binary classification, mixed columns).

    Looked for, in this order: ``adult.data.gz`` or ``adult.data``, and ``adult.test`` likewise, in
    the folder `data_home`; the same names in the folder that the environment variable
    ``SKDPNOISE_DATA`` names; OpenML data set 1590 through :func:`sklearn.datasets.fetch_openml`,
    which keeps a cache. A local file is used only if its sha256 sum is that of the published one.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        The published parts; "all" has the training part first.
    %(downloads: data_home)s
    as_frame : bool, default=False
        Return pandas objects rather than arrays: numeric columns are then float64. Needs the
        extra ``pandas``.
    %(downloads: return_X_y, download_if_missing)s

    Returns
    -------
    Bunch or tuple
        With these fields, of which `return_X_y` picks the first two:

        data : ndarray of object or DataFrame of shape (n_samples, 14)
            Numbers are floats: age (years), fnlwgt, education-num, capital-gain and capital-loss
            (USD), hours-per-week (hours). The others are str, with "?" where a value is missing.
        target : ndarray or Series of shape (n_samples,), str
            "<=50K" or ">50K".
        frame : DataFrame of shape (n_samples, 15) or None
            Both together, if ``as_frame=True``.
        %(downloads: feature_names, target_names)s
        categories : dict
            ``ADULT_CATEGORIES``.
        %(downloads: DESCR)s

    Raises
    ------
    %(downloads: OSError)s
    ValueError
        If `subset` is unknown.

    References
    ----------
    Ron Kohavi, "Scaling up the accuracy of naive-Bayes classifiers: a decision-tree hybrid", KDD
    1996.

    Examples
    --------
    >>> from skdpnoise.datasets import fetch_adult
    >>> adult = fetch_adult(subset="train", as_frame=True)
    >>> adult.data.shape, adult.feature_names[:2]
    ((32561, 14), ['age', 'workclass'])
    >>> float(round((adult.target == ">50K").mean(), 3))
    0.241
    """
    check_option("fetch_adult", "subset", subset, ("all", "train", "test"))
    rows = _rows(data_home, download_if_missing)
    rows = {"all": rows, "train": rows[:_N_TRAIN], "test": rows[_N_TRAIN:]}[subset]
    X, y = rows[:, :-1].copy(), rows[:, -1].astype(np.str_)
    for j, name in enumerate(_DESCRIPTION.feature_names):
        if name not in ADULT_CATEGORIES:
            X[:, j] = X[:, j].astype(np.float64)
    return as_bunch(
        X,
        y,
        _DESCRIPTION,
        as_frame=as_frame,
        return_X_y=return_X_y,
        categories=dict(ADULT_CATEGORIES),
    )


def _rows(
    data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> NDArray[np.object_]:
    """Return both parts, the training part first, as text, with the class last."""
    contents = [local_bytes(file, data_home) for file in (_TRAIN, _TEST)]
    if None not in contents:
        return np.vstack([_parse(content) for content in contents if content is not None])
    missing = (_TRAIN, _TEST)[contents.index(None)]
    rows: NDArray[np.object_] = download(
        "The Adult data set",
        missing,
        "sklearn.datasets.fetch_openml(data_id=1590)",
        (lambda: _from_openml(data_home)) if download_if_missing else None,
    )
    return rows


def _parse(content: bytes) -> NDArray[np.object_]:
    # The test part starts with a comment, and its labels end in a full stop.
    lines = content.decode("ascii").split("\n")
    rows = [line.rstrip(".").split(", ") for line in lines if line and not line.startswith("|")]
    return np.array(rows, dtype=object)


def _from_openml(data_home: str | os.PathLike[str] | None) -> NDArray[np.object_]:
    pandas_for("The Adult data set from OpenML")
    bunch = fetch_openml(data_id=1590, data_home=data_home, as_frame=True, parser="pandas")
    text = bunch.frame[list(_DESCRIPTION.columns)].astype(object)
    rows = text.where(text.notna(), "?").to_numpy()
    # OpenML has the test part first.
    rows = np.vstack([rows[_N_TEST:], rows[:_N_TEST]])
    if len(rows) != _N_TRAIN + _N_TEST or np.sum(rows[:_N_TRAIN, -1] == ">50K") != _N_RICH:
        raise ValueError("OpenML's rows are not those of the published parts")
    return rows
