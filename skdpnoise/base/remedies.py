"""Remedies for steps that are refused: words only, nothing is decided here."""

from __future__ import annotations

from typing import Any

from skdpnoise.base.register import related

_COUNTERPARTS = {
    "DPStandardScaler": ["StandardScaler"],
    "DPMinMaxScaler": ["MinMaxScaler", "MaxAbsScaler"],
    "DPRobustScaler": ["RobustScaler"],
    "DPQuantileTransformer": ["QuantileTransformer", "PowerTransformer"],
    "DPKBinsDiscretizer": ["KBinsDiscretizer"],
    "DPSimpleImputer": ["SimpleImputer", "KNNImputer"],
    "DPTableVectorizer": ["TableVectorizer"],
    "DPPCA": ["PCA", "IncrementalPCA", "TruncatedSVD"],
    "DPCovariance": ["EmpiricalCovariance"],
    "DPLogisticCD": ["LogisticRegression", "SGDClassifier"],
    "DPGridSearchCV around DPLogisticCD": ["LogisticRegressionCV"],
    "DPPoissonRegressor": ["PoissonRegressor"],
    "DPRidge": ["Ridge"],
    "DPLasso": ["Lasso"],
    "DPLassoPath": ["LassoCV", "ElasticNetCV"],
    "DPElasticNet": ["ElasticNet"],
    "DPHuberRegressor": ["HuberRegressor"],
    "DPQuantileRegressor": ["QuantileRegressor"],
    "DPLinearSVC": ["LinearSVC", "SVC"],
    "DPCoordinateDescentRegressor": [*("LinearRegression", "SGDRegressor", "SVR", "LinearSVR")],
    "DPGridSearchCV": ["GridSearchCV"],
    "DPRandomizedSearchCV": ["RandomizedSearchCV"],
    "OneHotEncoder with categories= and handle_unknown='ignore'": ["TargetEncoder"],
    "HashingVectorizer(decode_error='replace')": ["CountVectorizer", "TfidfVectorizer"],
    "FeatureHasher": ["DictVectorizer"],
}
_TEXTS = (
    "It needs a text for each record, and some record has none, or something else. Fill what is "
    "missing by an empty text, as in pandas.Series(texts).fillna('') or, in polars, "
    "texts.fill_null(''), and convert the rest to text. "
)
_NEEDS = {"HashingVectorizer": _TEXTS}
_COUNTERPART = {name: ours for ours, names in _COUNTERPARTS.items() for name in names}
_HOLDS = ("estimator", "estimators", "base_estimator", "regressor", "classifier", "transformers")


def remedy_for(estimator: Any) -> str:
    """Return why an object is refused that no register knows, and what to do instead."""
    name = type(estimator).__name__
    if isinstance(estimator, type):
        return "is a class: give an instance"
    if isinstance(estimator, str) or estimator is None or not hasattr(estimator, "fit"):
        return "is no estimator that is known here"
    parent = related(estimator)
    if parent is not None:
        return (
            f"is a subclass of {parent[1]}, and what a subclass does is for its author to promise: "
            f"skdpnoise.compose.register_{parent[0]}; or use {parent[1]} itself"
        )
    if name in _COUNTERPART:
        return f"learns from the data without privacy: use {_COUNTERPART[name]}"
    if name == "FrozenEstimator":
        return "holds a model whose training cannot be seen from here: use a private model itself"
    if any(attribute in vars(estimator) for attribute in _HOLDS):
        return (
            "learns from the data itself, and fits the estimator in it many times: use that "
            "estimator directly, or DPGridSearchCV to choose among candidates"
        )
    return "may learn from the data without privacy: use a private counterpart"


def remedy_for_data(name: str) -> str:
    """Return what data a public step of a class needs, where it fails for others; '' of most."""
    return _NEEDS.get(name, "")
