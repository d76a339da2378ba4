"""Tables made ready for models, protecting every record that is learnt from; public clipping."""

from skdpnoise.preprocessing._clipper import BoundsClipper
from skdpnoise.preprocessing._encoders import DPOneHotEncoder, DPOrdinalEncoder
from skdpnoise.preprocessing._imputer import DPSimpleImputer
from skdpnoise.preprocessing._quantile_maps import DPKBinsDiscretizer, DPQuantileTransformer
from skdpnoise.preprocessing._scalers import DPMinMaxScaler, DPRobustScaler, DPStandardScaler
from skdpnoise.preprocessing._table_vectorizer import DPTableVectorizer, TableColumns

__all__ = [
    "BoundsClipper",
    "DPKBinsDiscretizer",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPOrdinalEncoder",
    "DPQuantileTransformer",
    "DPRobustScaler",
    "DPSimpleImputer",
    "DPStandardScaler",
    "DPTableVectorizer",
    "TableColumns",
]
