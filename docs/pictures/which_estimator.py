"""Which estimator? A map from what somebody wants to the estimator that does it.

Run as `python docs/pictures/which_estimator.py docs/images/which_estimator.png`.
"""

import matplotlib.pyplot as plt
from _shown import save_or_show
from matplotlib.patches import FancyBboxPatch

# What somebody wants, its colour, and questions with the names that answer them.
GOALS = (
    (
        "Predict\na number",
        "#0072B2",
        (
            ("its mean; one penalty for any units", "DPCoordinateDescentRegressor"),
            ("its mean; scikit-learn's penalties", "DPRidge · DPLasso · DPElasticNet"),
            ("its mean; all penalties at once", "DPLassoPath"),
            ("a count or a rate", "DPPoissonRegressor"),
            ("a number with outliers", "DPHuberRegressor"),
            ("a quantile", "DPQuantileRegressor"),
            ("not linear, many thousand rows", "DPMLPRegressor · DPNeuralRegressor"),
        ),
    ),
    (
        "Predict\na label",
        "#D55E00",
        (
            ("the label and its probability", "DPLogisticRegression"),
            ("the label alone, by margins", "DPLinearSVC"),
            ("not linear, many thousand rows", "DPMLPClassifier · DPNeuralClassifier"),
        ),
    ),
    (
        "Find\nstructure",
        "#009E73",
        (
            ("main directions, fewer columns", "DPPCA"),
            ("which columns go together", "DPCovariance"),
        ),
    ),
    (
        "Prepare\ncolumns",
        "#CC79A7",
        (
            ("a table: categories, dates, gaps", "DPTableVectorizer"),
            ("one scale for all columns", "DPStandardScaler · DPRobustScaler\nDPMinMaxScaler"),
            ("public bounds, at no cost", "BoundsClipper"),
            ("categories", "DPOneHotEncoder · DPOrdinalEncoder"),
            ("missing numbers", "DPSimpleImputer"),
            ("bins, or a given shape", "DPKBinsDiscretizer\nDPQuantileTransformer"),
        ),
    ),
    (
        "Put it\ntogether",
        "#E69F00",
        (
            ("several steps, one guarantee", "DPPipeline"),
            ("the best of a grid", "DPGridSearchCV"),
            ("the best of sampled parameters", "DPRandomizedSearchCV"),
        ),
    ),
)
WIDTH, STEP, TALL, GAP = 10.0, 0.5, 0.7, 0.3  # inches: figure, row, row of two lines, between goals
COLUMNS = {"goal": (0.1, 1.35), "question": (2.15, 3.25), "name": (5.95, 3.95)}  # left, width
INK = "#1A1A1A"


def draw():
    """Draw the map."""
    rows = [[TALL if "\n" in name else STEP for _, name in pairs] for _, _, pairs in GOALS]
    height = sum(map(sum, rows)) + GAP * (len(GOALS) - 1) + 0.55
    figure = plt.figure(figsize=(WIDTH, height), facecolor="white")
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, height))
    ax.set_axis_off()
    for column, title in zip(COLUMNS, ("You want to ...", "What exactly?", "Take"), strict=True):
        ax.text(COLUMNS[column][0], height - 0.25, title, va="center", weight="bold", color=INK)
    top = height - 0.5
    for (goal, colour, pairs), heights in zip(GOALS, rows, strict=True):
        middle = top - sum(heights) / 2
        _box(ax, "goal", middle, goal, colour, {"weight": "bold", "fontsize": 12})
        for (question, name), tall in zip(pairs, heights, strict=True):
            y = top - tall / 2
            _box(ax, "question", y, question, colour, {"fontsize": 11})
            _box(ax, "name", y, name, colour, {"family": "monospace", "fontsize": 10.5})
            _arrow(ax, "goal", "question", (middle, y), colour)
            _arrow(ax, "question", "name", (y, y), colour)
            top -= tall
        top -= GAP
    return figure


def _box(ax, column, y, text, colour, font):
    """Draw a box with a text in a column of the map."""
    left, width = COLUMNS[column]
    lines = text.count("\n") + 1
    half = {"goal": 0.38}.get(column, 0.1 + 0.1 * lines)
    ax.add_patch(
        FancyBboxPatch(
            (left, y - half),
            width,
            2 * half,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor="#F2F2F2" if column == "goal" else "white",
            edgecolor=colour,
            linewidth=2.4 if column == "goal" else 1.6,
        )
    )
    centred = {"x": left + width / 2, "ha": "center"} if column == "goal" else {"x": left + 0.12}
    ax.text(y=y, s=text, va="center", color=INK, **centred, **font)


def _arrow(ax, start, end, heights, colour):
    """Draw an arrow between boxes of two columns."""
    tail = (COLUMNS[start][0] + COLUMNS[start][1], heights[0])
    head = (COLUMNS[end][0], heights[1])
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 1, "shrinkB": 1}
    ax.annotate("", head, tail, arrowprops=look)


if __name__ == "__main__":
    save_or_show(draw())
