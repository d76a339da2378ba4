"""California housing (Pace and Barry, 1997): regression, 20,640 rows, 8 columns."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_california_housing
from sklearn.utils import Bunch

from skdpnoise.datasets._sources import DataFile, Description, as_bunch, download, local_bytes
from skdpnoise.privacy.shared_texts import shared_texts

_FILE = DataFile(
    name="cal_housing.data",
    sha256="a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",
)

_DESCRIPTION = Description(
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

    Looked for, in this order: ``cal_housing.data.gz`` or ``cal_housing.data`` in the folder
    `data_home`; the same names in the folder that the environment variable ``SKDPNOISE_DATA``
    names; scikit-learn's cache; scikit-learn's download. A local file is used only if its
    sha256 sum is that of the published one.

    Parameters
    ----------
    %(downloads: data_home, as_frame, return_X_y)s
    download_if_missing : bool, default=True
        If False, an error is raised where a download would be needed.

    Returns
    -------
    Bunch or tuple
        With these fields, of which `return_X_y` picks the first two:

        data : ndarray or DataFrame of shape (20640, 8), float64
            MedInc (10,000 USD), HouseAge (years), AveRooms, AveBedrms (per household),
            Population (persons), AveOccup (persons per household), Latitude, Longitude (degrees).
        target : ndarray or Series of shape (20640,), float64
            Median house value in 100,000 USD.
        frame : DataFrame of shape (20640, 9) or None
            Both together, if ``as_frame=True``.
        %(downloads: feature_names, target_names, DESCR)s

    Raises
    ------
    %(downloads: OSError)s

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
    content = local_bytes(_FILE, data_home)
    if content is not None:
        X, y = _parse(content)
    else:
        X, y = download(
            "The California housing data set",
            _FILE,
            "sklearn.datasets.fetch_california_housing()",
            # scikit-learn answers from its own cache even where a download is not wanted.
            lambda: fetch_california_housing(
                data_home=data_home, download_if_missing=download_if_missing, return_X_y=True
            ),
        )
    return as_bunch(X, y, _DESCRIPTION, as_frame=as_frame, return_X_y=return_X_y)


def _parse(content: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    raw = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = raw.T
    rates = rooms / households, bedrooms / households
    X = np.column_stack(
        [income, age, *rates, population, population / households, latitude, longitude]
    )
    return X, value / 100_000.0
