"""Electricity, Elec2 (Harries, 1999): binary classification, 45,312 rows, 8 columns."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import arff
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from skdpnoise.datasets._sources import DataFile, Description, as_bunch, download, local_bytes
from skdpnoise.privacy.shared_texts import shared_texts

_FILE = DataFile(
    name="elecNormNew.arff",
    sha256="2d86fbc74c69a5c04bcde0119bce280dd6d8efa0115987edc75b77ccf024d7f2",
)

_DESCRIPTION = Description(
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

    Looked for, in this order: ``elecNormNew.arff.gz`` or ``elecNormNew.arff`` in the folder
    `data_home`; the same names in the folder that the environment variable ``SKDPNOISE_DATA``
    names; OpenML data set 151 through :func:`sklearn.datasets.fetch_openml`, which keeps a
    cache. A local file is used only if its sha256 sum is that of the published one.

    Parameters
    ----------
    %(downloads: data_home, as_frame, return_X_y, download_if_missing)s

    Returns
    -------
    Bunch or tuple
        With these fields, of which `return_X_y` picks the first two:

        data : ndarray or DataFrame of shape (45312, 8), float64
            date, period, nswprice, nswdemand, vicprice, vicdemand, transfer: without unit,
            scaled to [0, 1] by the publisher; day: day of the week, a number from 1 to 7.
        target : ndarray or Series of shape (45312,), str
            "UP" or "DOWN".
        frame : DataFrame of shape (45312, 9) or None
            Both together, if ``as_frame=True``.
        %(downloads: feature_names, target_names, DESCR)s

    Raises
    ------
    %(downloads: OSError)s

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
    content = local_bytes(_FILE, data_home)
    if content is not None:
        X, y = _parse(content)
    else:
        X, y = download(
            "The Electricity data set",
            _FILE,
            "sklearn.datasets.fetch_openml(data_id=151)",
            (lambda: _from_openml(data_home)) if download_if_missing else None,
        )
    return as_bunch(X, y, _DESCRIPTION, as_frame=as_frame, return_X_y=return_X_y)


def _parse(content: bytes) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    records, _ = arff.loadarff(io.StringIO(content.decode("ascii")))
    # Nominal columns come as bytes, numeric ones as floats; astype reads both.
    X = np.column_stack([records[name].astype(np.float64) for name in _DESCRIPTION.feature_names])
    return X, records["class"].astype(np.str_)


def _from_openml(
    data_home: str | os.PathLike[str] | None,
) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    # liac-arff is the parser that needs no pandas; it codes a nominal value by its place in the
    # list of categories, so `day` has to be translated back to the number it stands for.
    bunch = fetch_openml(data_id=151, data_home=data_home, as_frame=False, parser="liac-arff")
    columns = dict(zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True))
    days = np.asarray(bunch.categories["day"], dtype=np.float64)
    columns["day"] = days[columns["day"].astype(np.intp)]
    X = np.column_stack([columns[name].astype(np.float64) for name in _DESCRIPTION.feature_names])
    return X, np.asarray(bunch.target).astype(np.str_)
