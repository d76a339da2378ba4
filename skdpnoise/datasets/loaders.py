"""Adult (mixed columns), California housing (regression) and Electricity (classification)."""

from __future__ import annotations

import io
import os
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import arff
from sklearn.datasets import fetch_california_housing, fetch_openml
from sklearn.utils import Bunch

from skdpnoise._utils.checks import check_option, pandas_for
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.datasets._sources import DataSet

__all__ = ["ADULT_CATEGORIES", "fetch_adult", "fetch_california", "fetch_electricity"]

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

_ADULT = DataSet(
    name="Adult",
    files={
        "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    },
    route="sklearn.datasets.fetch_openml(data_id=1590)",
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

    Read from ``adult.data`` and ``adult.test``, else OpenML data set 1590, cached by scikit-learn.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        The published parts; "all" has the training part first.
    %(downloads: data_home, as_frame)s
        Numeric columns are then float64.
    %(downloads: return_X_y, download_if_missing)s
    %(downloads: Returns)s

        data : ndarray of object or DataFrame of shape (n_samples, 14)
            Numbers are floats: age (years), fnlwgt, education-num, capital-gain and capital-loss
            (USD), hours-per-week (hours). The others are str, with "?" where a value is missing.
        target : ndarray or Series of shape (n_samples,), str
            "<=50K" or ">50K".
        %(downloads: frame, feature_names, target_names)s
        categories : dict
            ``ADULT_CATEGORIES``.
        %(downloads: DESCR)s
    %(downloads: Raises)s
    ValueError
        If `subset` is unknown.

    References
    ----------
    Kohavi, "Scaling up the accuracy of naive-Bayes classifiers: a decision-tree hybrid", KDD 1996.

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
    rows = _ADULT.read(data_home, _parse_adult, _adult_from_openml if download_if_missing else None)
    rows = {"all": rows, "train": rows[:_N_TRAIN], "test": rows[_N_TRAIN:]}[subset]
    X, y = rows[:, :-1].copy(), rows[:, -1].astype(np.str_)
    for j, name in enumerate(_ADULT.feature_names):
        if name not in ADULT_CATEGORIES:
            X[:, j] = X[:, j].astype(np.float64)
    categories = dict(ADULT_CATEGORIES)
    return _ADULT.bunch(X, y, as_frame=as_frame, return_X_y=return_X_y, categories=categories)


def _parse_adult(train: bytes, test: bytes) -> NDArray[np.object_]:
    # The test part starts with a comment, and its labels end in a full stop.
    lines = (train + b"\n" + test).decode("ascii").split("\n")
    rows = [line.rstrip(".").split(", ") for line in lines if line and not line.startswith("|")]
    return np.array(rows, dtype=object)


def _adult_from_openml(data_home: str | os.PathLike[str] | None) -> NDArray[np.object_]:
    pandas_for("The Adult data set from OpenML")
    bunch = fetch_openml(data_id=1590, data_home=data_home, as_frame=True, parser="pandas")
    text = bunch.frame[list(_ADULT.columns)].astype(object)
    rows = text.where(text.notna(), "?").to_numpy()
    # OpenML has the test part first.
    rows = np.vstack([rows[_N_TEST:], rows[:_N_TEST]])
    if len(rows) != _N_TRAIN + _N_TEST or np.sum(rows[:_N_TRAIN, -1] == ">50K") != _N_RICH:
        raise ValueError("OpenML's rows are not those of the published parts")
    return rows


_CALIFORNIA = DataSet(
    name="California housing",
    files={"cal_housing.data": "a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214"},
    route="sklearn.datasets.fetch_california_housing()",
    title="""California housing

One row for each of the 20,640 block groups of the 1990 U.S. census in California.""",
    columns={
        "MedInc": "median income, 10,000 USD, top-coded at 15.0001",
        "HouseAge": "median age of the houses, years, top-coded at 52",
        "AveRooms": "rooms per household",
        "AveBedrms": "bedrooms per household",
        "Population": "persons in the block group",
        "AveOccup": "persons per household",
        "Latitude": "degrees north",
        "Longitude": "degrees east (negative)",
        "MedHouseVal": (
            "target: median value of the houses, 100,000 USD, top-coded at 5.00001 (965 rows)"
        ),
    },
    notes="""\
One record is a block group, not a person: a guarantee for one record of these data is a
guarantee for one block group.

Source: R. Kelley Pace and Ronald Barry, "Sparse Spatial Autoregressions", Statistics and
Probability Letters 33 (1997) 291-297.
""",
)


@shared_texts
def fetch_california(
    *,
    data_home: str | os.PathLike[str] | None = None,
    as_frame: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Load the California housing data (regression).

    The columns are those of :func:`sklearn.datasets.fetch_california_housing`, number for
    number: with the columns c0 to c8 of the original file they are c7, c2, c3/c6, c4/c6, c5,
    c5/c6, c1, c0, and the target is c8/100000.

    Read from ``cal_housing.data``, else from scikit-learn's cache or its download.

    Parameters
    ----------
    %(downloads: data_home, as_frame, return_X_y)s
    download_if_missing : bool, default=True
        If False, an error is raised where a download would be needed.
    %(downloads: Returns)s

        data : ndarray or DataFrame of shape (20640, 8), float64
            MedInc (10,000 USD), HouseAge (years), AveRooms, AveBedrms (per household),
            Population (persons), AveOccup (persons per household), Latitude, Longitude (degrees).
        target : ndarray or Series of shape (20640,), float64
            Median house value in 100,000 USD.
        %(downloads: frame, feature_names, target_names, DESCR)s
    %(downloads: Raises)s

    References
    ----------
    R. Kelley Pace and Ronald Barry, "Sparse Spatial Autoregressions", Statistics and Probability
    Letters 33 (1997) 291-297.

    Examples
    --------
    >>> from skdpnoise.datasets import fetch_california
    >>> california = fetch_california()
    >>> california.data.shape, california.target.shape
    ((20640, 8), (20640,))
    >>> california.feature_names[:3]
    ['MedInc', 'HouseAge', 'AveRooms']
    """
    # scikit-learn answers from its own cache even where a download is not wanted.
    fetch = partial(
        fetch_california_housing, download_if_missing=download_if_missing, return_X_y=True
    )
    X, y = _CALIFORNIA.read(data_home, _parse_california, fetch)
    return _CALIFORNIA.bunch(X, y, as_frame=as_frame, return_X_y=return_X_y)


def _parse_california(content: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    raw = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = raw.T
    rates = rooms / households, bedrooms / households
    X = np.column_stack(
        [income, age, *rates, population, population / households, latitude, longitude]
    )
    return X, value / 100_000.0


_ELECTRICITY = DataSet(
    name="Electricity",
    files={"elecNormNew.arff": "2d86fbc74c69a5c04bcde0119bce280dd6d8efa0115987edc75b77ccf024d7f2"},
    route="sklearn.datasets.fetch_openml(data_id=151)",
    title="""Electricity (Elec2), normalised

45,312 half hours of the electricity market of New South Wales, in time order, 7 May 1996 to
5 December 1998. Every column but `day` was scaled to [0, 1] by its publisher.""",
    columns={
        "date": "day as the number yymmdd, scaled: (yymmdd - 960507) / 22601",
        "day": "day of the week, 1 to 7",
        "period": "half hour of the day, k/47 for k = 0 to 47",
        "nswprice": "price in New South Wales, scaled",
        "nswdemand": "demand in New South Wales, scaled",
        "vicprice": "price in Victoria, scaled",
        "vicdemand": "demand in Victoria, scaled",
        "transfer": "scheduled transfer between the two states, scaled",
        "class": """target: price in New South Wales against its mean over the last 24 hours:
"UP" (19,237 rows) or "DOWN" (26,075 rows)""",
    },
    notes="""\
Known defects, left as they are: in the first 17,424 rows vicprice, vicdemand and transfer are
constant filler; 4 May 1997 occurs twice and the code of the days changes there; month and day
are swapped in the date of 27 days.

Source: Michael Harries, "SPLICE-2 Comparative Evaluation: Electricity Pricing", technical report,
University of New South Wales, 1999. Distributed with MOA and as OpenML data set 151.
""",
)


@shared_texts
def fetch_electricity(
    *,
    data_home: str | os.PathLike[str] | None = None,
    as_frame: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Load the Electricity data, Elec2 normalised (binary classification).

    Read from ``elecNormNew.arff``, else from OpenML data set 151, which scikit-learn caches.

    Parameters
    ----------
    %(downloads: data_home, as_frame, return_X_y, download_if_missing)s
    %(downloads: Returns)s

        data : ndarray or DataFrame of shape (45312, 8), float64
            date, period, nswprice, nswdemand, vicprice, vicdemand, transfer: without unit,
            scaled to [0, 1] by the publisher; day: day of the week, a number from 1 to 7.
        target : ndarray or Series of shape (45312,), str
            "UP" or "DOWN".
        %(downloads: frame, feature_names, target_names, DESCR)s
    %(downloads: Raises)s

    References
    ----------
    Michael Harries, "SPLICE-2 Comparative Evaluation: Electricity Pricing", technical report,
    University of New South Wales, 1999.

    Examples
    --------
    >>> from skdpnoise.datasets import fetch_electricity
    >>> X, y = fetch_electricity(return_X_y=True)
    >>> X.shape, y.shape
    ((45312, 8), (45312,))
    >>> sorted(set(y.tolist()))
    ['DOWN', 'UP']
    """
    fetch = _electricity_from_openml if download_if_missing else None
    X, y = _ELECTRICITY.read(data_home, _parse_electricity, fetch)
    return _ELECTRICITY.bunch(X, y, as_frame=as_frame, return_X_y=return_X_y)


def _parse_electricity(content: bytes) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    records, _ = arff.loadarff(io.StringIO(content.decode("ascii")))
    # Nominal columns come as bytes, numeric ones as floats; astype reads both.
    X = np.column_stack([records[name].astype(np.float64) for name in _ELECTRICITY.feature_names])
    return X, records["class"].astype(np.str_)


def _electricity_from_openml(
    data_home: str | os.PathLike[str] | None,
) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    # liac-arff is the parser that needs no pandas; it codes a nominal value by its place in the
    # list of categories, so `day` has to be translated back to the number it stands for.
    bunch = fetch_openml(data_id=151, data_home=data_home, as_frame=False, parser="liac-arff")
    columns = dict(zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True))
    days = np.asarray(bunch.categories["day"], dtype=np.float64)
    columns["day"] = days[columns["day"].astype(np.intp)]
    X = np.column_stack([columns[name].astype(np.float64) for name in _ELECTRICITY.feature_names])
    return X, np.asarray(bunch.target).astype(np.str_)
