"""Texts that public docstrings share, each written once, and what puts them in.

In a docstring a line such as ``%(fits: X, y)s`` stands for entries of the section "fits" below, and
in a section for entries of one above it. Indented lines that follow the mark continue the last
entry. Of the section "paragraphs" what is below a name stands for itself. A section named after a
class is of constructor parameters, which
:func:`skdpnoise.base.constructors.constructor_of_fields` puts in.

estimators
----------
feature_bounds : tuple (low, high), dict of such by column, or None, default=None
    **Public** bounds of the features in their own units, each a number or an array of shape
    (n_features,); infinite where a column has none. For frames also a dict of columns by name,
    such as ``{"age": (17, 90)}``; others have none. They must not be read from the data.
target_bounds : tuple (low, high) or None, default=None
    **Public** bounds of the target. None finds its location and scale privately.
n_jobs : int or None, default=None
    Threads for large data; None is one, -1 all. The result does not depend on it.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of str
    Names of the features, where X has them.
privacy_ : PrivacyReport
    The guarantee and every release behind it; prints as text, and as a card in notebooks.
clip_range_ : ndarray of shape (2, n_features)
    Range to which fit and predict clip values; infinite for columns that are not used.
category_mechanism_ : CategoryMechanism or None
    What chose the categories that were found: its ``chance(m)`` is the probability at most with
    which a category of m records is shown. None if none were looked for.
n_passes_ : int
    Passes made.
n_samples_seen_ : int or float
    Number of records: public, or noisy under "add_remove".

PrivateEstimator
----------------
epsilon : float, default=1.0
    The guarantee's ε > 0: smaller is more private.
delta : float, default=1e-6
    The guarantee's δ in [0, 1). Choose it well below one over the number of records. 0 asks for
    pure privacy, which Laplace noise and K-norms can give and Gaussian noise cannot.
noise : str, default="auto"
    ``"<rule>_<family>"`` with rule "iid", "spr" or "inid" and a family such as "gaussian" or
    "laplace" (``noise_options(adaptive=True)`` of :mod:`skdpnoise.mechanisms` lists all). "auto"
    takes Gaussian or Laplace noise, whichever has the smaller expected error.
adjacency : {"replace_one", "add_remove"}, default="replace_one"
    Whether neighbouring data sets differ in the value of one record, or in its presence. In the
    second case the number of records is private, and estimated with a part of the budget.
rows_per_group : int, default=1
    With ``groups`` in fit: the most rows of a group that are used, chosen at random where it has
    more. **Public**; the noise grows with it. See "who counts as one person" in the documentation.
ledger : object with ``charge`` or None, default=None
    A :class:`~skdpnoise.ledger.PrivacyLedger` that records the cost of every fit, and refuses one
    beyond the budget of the data set. Copies of the estimator share it.
random_state : int, RandomState, Generator or None, default=None
    None takes noise from the operating system's cryptographic source. Anything else is
    reproducible and gives no protection against anyone who knows it: for tests only.

PrivateLinearModel
------------------
fit_intercept : bool, default=True
    Whether to fit an intercept. Without one, columns are scaled but not centred.
%(estimators: feature_bounds)s
    None finds locations and scales privately, with a part of the budget.
%(estimators: n_jobs, target_bounds)s

regressors
----------
coef_ : ndarray of shape (n_features,)
    Coefficients in the user's units.
intercept_ : float
    Intercept in the user's units.
solver_ : str
    "gradient", "gram" or "joint".

DescentParameters
-----------------
alpha : float, default=0.0
    Strength of the penalty, on coefficients of columns in units of their standard deviation.
l1_ratio : float, default=0.5
    Mix of the penalty, 1 for the lasso and 0 for ridge.
n_passes : int or "auto", default="auto"
    Passes over the coordinates, fixed before the data are seen.
clip : float or "auto", default="auto"
    Bound on one record's gradient in each coordinate, in standardised units.
column_groups : list or dict of lists of columns, default=None
    Groups of columns, by number or name, in each of which a row has Euclidean norm at most 1:
    one-hot columns of one category, or hashed words with norm 1. Longer parts are made shorter, so
    that a wrong **declaration** costs accuracy, never the guarantee. These columns need no bounds,
    and no budget is spent on their scales.

CoordinateParameters
--------------------
budget_growth : float or "auto", default="auto"
    Ratio g ≥ 1 of the budgets of successive passes: noise in late passes hurts more.
error_weights : "curvature", "uniform" or array-like, default="curvature"
    Weight of each coordinate's noise in the allocation of "inid" noise: the inverse public
    curvature; 1 (the same for standardised columns); or positive weights of shape (n_features,),
    with one more for the intercept.

LeastSquares
------------
solver : {"auto", "gradient", "gram", "joint"}, default="auto"
    As that of :class:`DPCoordinateDescentRegressor`. "gram" solves this very problem, but for
    noise; the clipped gradients of the others are weaker, so that α shrinks more with them.
alpha : float, default=1.0
    α, beside half the mean of squares. Columns in small units are penalised more: scale them,
    or use :class:`DPCoordinateDescentRegressor`, whose penalty is of standardised columns.
%(DescentParameters: column_groups)s
    "auto" takes "joint" or, where its noise is small, "gram" then.

WholeGradientParameters
-----------------------
%(PrivateEstimator: noise)s
    Normal noise with delta > 0. With delta = 0 only "auto": gradients have the noise of the
    K-norm of their ball (:func:`~skdpnoise.mechanisms.k_norm`), all else Laplace noise.
clip : float or "auto", default="auto"
    Bound on the norm of one record's gradient, of standardised columns.

PrivateScaler
-------------
%(estimators: feature_bounds)s
    None finds ranges privately, with 70 % of the budget.
copy : bool, default=True
    Whether to leave X as it is; otherwise it is transformed in place where possible.

PrivateEncoder
--------------
delta : float, default=1e-6
    The guarantee's δ in (0, 1), half of which is the chance to show a category that a single
    record has. 0 needs public categories.
categories : "auto", list or dict, default="auto"
    **Public** categories: for each column a list, or "auto" to find them; or a dict of lists
    by the names of columns, others are found. They must not be read from the data.
noise : str, default="auto"
    Of counts: ``"iid_gaussian"``, ``"iid_laplace"`` or another noise of one scale; "auto" takes
    the one of these two that shows more.

PrivateMomentsMixin
-------------------
noise : str, default="auto"
    See :func:`~skdpnoise.mechanisms.calibrate_second_moments`. It decides whether the steps
    share μ² (normal noise) or ε.
row_norm : float or None, default=None
    Public bound R on the norm of a centred row. None finds a quantile of the norms privately.
%(estimators: feature_bounds)s
    Columns whose bounds are narrow get less noise.
%(estimators: n_jobs)s

PrivateNetwork
--------------
noise : str, default="auto"
    Normal or Laplace noise with rule "iid" (one scale for all groups), "spr" (equal shares of the
    budget) or "inid" (shares of the least total noise), such as "inid_gaussian". "auto" is that, or
    "inid_laplace" where delta is 0.
adjacency : {"add_remove"}, default="add_remove"
    Neighbours differ in the presence of one record, or person: sampling is proven for no other.
clip_groups : {"global", "layer", "tensor"} or callable, default="global"
    Parameters that are clipped together, with noise of one scale: all, those of a layer, or each
    tensor. A callable returns the label of the group of a tensor's name, such as "0.weight".
clip : float, array-like of shape (n_groups,), "auto" or "adaptive", default="auto"
    **Public** bound on the norm of a person's gradient in each group, Euclidean for normal noise
    and l1 for Laplace noise. "auto" is 1 over the root of the number of groups; for Laplace noise
    times the root of the group's size. "adaptive" begins there, and follows the median of norms by
    noisy counts of who is within, which are one release with the gradient.
batch_size : int, float or "auto", default="auto"
    Expected size of a batch, which every record enters independently. A number in (0, 1] is the
    probability of a record. A whole number depends on the number of records: give `n_samples`, or
    it costs a fiftieth of ε. "auto" is the probability for 200 batches.
max_iter : int, default=20
    Epochs: the average number of batches that a record is in.
solver : {"sgd", "adam"}, default="sgd"
    Optimiser that follows the noisy gradients: post-processing.
learning_rate_init : float or "auto", default="auto"
    Step length, in units of the bound on a gradient. "auto" is in proportion to the sum of a batch
    over its noise, by public and released numbers, so that the way of all steps is longer with more
    records and a larger ε; with "adam" it is torch's.
momentum : float, default=0.9
    Of "sgd".
alpha : float, default=0.0
    Strength of the squared penalty on weights, biases not included.
%(estimators: feature_bounds)s
    Within finite ones features are divided by half their range; 0 stays 0 where it is within, else
    the middle becomes 0. None finds locations and scales privately, with a tenth of the budget.
n_samples : int or None, default=None
    **Public** number of records, or of people with `groups`. None estimates it privately.
device : str, default="cpu"
    Where torch computes, such as "cuda".

LayerParameters
---------------
hidden_layer_sizes : int or array-like of int, default=(100,)
    Widths of the hidden layers.
activation : {"identity", "logistic", "tanh", "relu"}, default="tanh"
    Of hidden layers. A bounded one loses less to clipping.

ModuleParameters
----------------
module : callable or None, default=None
    Makes a `torch.nn.Module` that takes rows, shape (n, n_features) or that of X, and returns
    outputs: a class, or a function. Parameters such as ``module__hidden=64`` go to it. None is a
    multilayer perceptron with one layer of 100. It must keep nothing of the rows. What it makes is
    declared public, with frozen parameters, which stay as they are.
%(estimators: feature_bounds)s
    Features are put into ±1 within finite ones. None leaves them as they are. Without a module
    they are those of :class:`DPMLPClassifier`.

NetworkClassifier
-----------------
classes : array-like of shape (n_classes,) or None, default=None
    **Public** labels. None takes those that occur in y.

NetworkRegressor
----------------
%(estimators: target_bounds)s

fits
----
y : Ignored
    For pipelines.
groups : array-like or RowSource of shape (n_samples,) or None, default=None
    Labels of the owners of rows: people, households, devices. The guarantee then holds for groups,
    of each of which at most ``rows_per_group`` rows are used. None protects single records.
**params : dict
    Refused, but for ``sample_weight=None``: no sensitivity with weights is proven.
TypeError
    If anything but X, y and groups is passed.
ValueError
    If a parameter or the data are not as described, or the noise cannot give the guarantee.
BudgetExceededError
    If the ledger does not cover the fit: nothing is spent then, and an earlier fit stays.

networks
--------
module_ : torch.nn.Module
    The trained network, in eval mode: the mean of the last fifth of its states.
calibration_ : ndarray of shape (2,)
    Slope and intercept of two classes' log-odds in the difference of the outputs of ``module_``; of
    more classes (1, 0), as they are.
allocation_ : dict of ndarray
    Of each group: "group", "n_parameters", "clip", "noise" (the standard deviation per parameter),
    and "signal_to_noise": the norm of the sum of a batch whose gradients agree, over that of noise.
classes_ : ndarray of shape (n_classes,)
    The labels.
References
    Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1. Muthukrishnan
    and Kalyani, arXiv:2302.03511, Section VI-C (noise of groups). Zhu, Dong and Wang, AISTATS 2022,
    Theorem 11 (sampling).

paragraphs
----------
fit_by_whole_gradients
    coef_path_, intercept_path_ : ndarray of shape (n_passes, ...)
        Coefficients after every pass, of which ``coef_`` is the mean of the last two fifths.
    %(estimators: clip_range_, n_passes_, n_features_in_, feature_names_in_, privacy_)s
fit_by_either_clip
    coef_path_, intercept_path_ : ndarray of shape (n_passes, ...)
        Coefficients after every pass, of which ``coef_`` is the mean of the last two fifths; with
        "coordinate", of the last fifth.
    solver_ : str
        "coordinate" or "joint".
    %(estimators: clip_range_, n_passes_, n_features_in_, feature_names_in_, privacy_)s
fit_of_least_squares
    %(regressors: coef_, intercept_, solver_)s
    coef_path_, intercept_path_ : ndarray of shape (n_passes, ...)
        Coefficients after every pass, not with "gram".
    %(estimators: clip_range_, n_passes_)s
        Not with "gram".
    %(estimators: n_features_in_, feature_names_in_, privacy_)s
privacy_of_whole_gradients
    **Privacy.** Neighbours are as ``adjacency`` says. Released are, in this order and all charged
    for in ``privacy_``, under the labels in quotes:

    1. "number of records", under add/remove only: a record moves it by 1.
    2. Location and scale of the target, as in :class:`DPCoordinateDescentRegressor`.
    3. Locations and scales of the features, as in the same class.
    4. "gradients": for each pass the sum over records of the gradient in all columns, clipped to
       the norm C and rounded to integers within it (:mod:`skdpnoise.kernels.joint`: it moves by 2C
       in Euclidean norm under replace-one, by C under add/remove), plus exact integer noise.
    5. "second moments", where noise is much for each column (μ times the number of records below 70
       for each that is used, all of them public or released): those of the released model's
       prediction and of the target, as in the same class.

    Composition, and what is not protected, are as there.
privacy_of_least_squares
    **Privacy.** As for :class:`DPCoordinateDescentRegressor`: releases, their labels and what a
    record does to each are the same. How strong the penalty is for standardised columns follows
    from α, released scales and the number of records, public or released: post-processing.
gradients_of_people
    by stochastic gradient descent, with gradients of single records that are clipped in groups of
    parameters, and noise that may differ between groups. It needs torch
    (``pip install 'skdpnoise[torch]'``).
attributes_of_trainings
    n_iter_ : int
        Epochs.
    n_steps_ : int
        Batches.
    sampling_rate_ : float
        Chance of a record to be in a batch.
    %(estimators: n_features_in_, feature_names_in_, privacy_)s
stages_of_networks
    Notes
    -----
    **Privacy.** Neighbours differ in one record, or person, more or fewer. Released are, in this
    order and all charged for in ``privacy_``, under the labels in quotes:

    1. "number of records", which a person moves by 1; not with `n_samples`.
    2. Locations and scales of columns without bounds (those of
       :func:`~skdpnoise.queries.private_location_scale`); of a regressor's target, "target: ...",
       as in :class:`~skdpnoise.DPCoordinateDescentRegressor` without bounds.
    3. "gradients": in each step the sum over a Poisson sample of the people of their gradients,
       each clipped in its groups and rounded to integers within the bounds
       (:class:`skdpnoise.kernels.joint.parts.ClippedParts`), plus exact integer noise, divided by
       the chance to be sampled times the number of people. A person in the sample moves it by the
       bounds, and is in it by a coin from the secure source
       (:class:`skdpnoise.mechanisms.sampled.SampledMechanism`). A gradient of one person is a
       function of that person's rows alone, to the last bit. One that is not finite counts as 0.
    4. "labels by score", of a classifier of two classes: how many rows of each class have scores
       (differences of the outputs of the finished network) in each of 16 fixed bins, with a tenth
       of the budget. A row is one count, whatever its score: one more or less moves one count by 1.
       Scores are those of one row after the other, so that no row's hangs on another. From these
       counts alone slope and intercept of the log-odds follow.

    The scales of the noise are calibrated to what the rest leaves, exactly and rounded up
    (:func:`skdpnoise.privacy.poisson_sampled`). All steps are charged for before the first batch;
    how many there are, and what callbacks see, does not hang on the data. A network's first
    parameters, the shape of the network and labels are public. Batch norm in training is refused.
any_network
    Notes
    -----
    **Privacy.** Released and charged for is what :class:`DPMLPClassifier` releases, in its order;
    locations and scales of columns only without a module. The first parameters of the network, its
    shape, its frozen parameters and labels are public. Batch norm in training is refused.
quantiles
    **Privacy.** That of :func:`~skdpnoise.queries.private_quantiles`. What :meth:`transform`
    returns of a private record is not private.

predictions
-----------
X : array-like of shape (n_samples, n_features)
    Features, clipped to ``clip_range_``.

WholeMixin
----------
%(PrivateEstimator: epsilon, delta)s
    Both are of the whole.
public : collection of str, default=()
    Names of steps that learn nothing private, which the report lists as declared by the user.
rows_per_group : int, default=1
    **Public**: of each group (``fit(..., groups=...)``) at most so many rows are used.
%(PrivateEstimator: random_state)s

PrivateSearchCV
---------------
estimator : estimator
    A private estimator, or a composition whose steps are private or known to learn nothing: this
    is checked for **every candidate** before anything is fitted. Callbacks of its own are refused,
    since they would see exact scores.
scoring : str or None, default=None
    The score. None is accuracy for classifiers and R² for regressors. "accuracy",
    "balanced_accuracy", "roc_auc" (two labels, adjacency "replace_one") and "neg_log_loss" are for
    classifiers; "r2", "neg_mean_squared_error", "neg_root_mean_squared_error" and
    "neg_mean_absolute_error" for regressors. Losses of single records are clipped: log-loss at 4,
    errors at two scales of the target. The second and third estimate the shares of the labels from
    a tenth of the records.
strategy : {"auto", "release", "repeated", "noisy_max"}, default="auto"
    "release" makes all candidates from one release, where they are post-processing of it (`alpha`
    and `l1_ratio` of a :class:`~skdpnoise.DPCoordinateDescentRegressor` with second moments).
    "repeated" takes the best of a random number of runs of random candidates. "noisy_max" fits each
    candidate with a share of the budget. "auto" leaves most to each fit: "release" where possible,
    "noisy_max" for two or three candidates or with ``refit=True``, else "repeated".
repetitions : law of the number of runs or "auto", default="auto"
    For "repeated": :class:`~skdpnoise.privacy.TruncatedNegativeBinomial` or
    :class:`~skdpnoise.privacy.PoissonRepetitions`.
refit : bool or "auto", default="auto"
    For "noisy_max": search with half of the budget, and fit the winner again, to all used records,
    with the other half. Else the winner is published as fitted to the training part. "auto" fits it
    again for more than two candidates, where half of the budget exceeds the share of one. With
    True, ``strategy="auto"`` takes "noisy_max" for any number of candidates.
validation_fraction : float or "auto", default="auto"
    Share of the records, or groups, that score candidates and fit none, chosen at random. "auto" is
    a tenth, and none for "release": there the records of the fit judge the penalties, with a
    twentieth of the budget, which flatters those with many columns for few records; give a number
    then. With "add_remove" it may be 0.5 at most.
target_bounds : tuple (low, high) or None, default=None
    **Public** bounds of the target, for the units of errors. None estimates them from a tenth of
    the records, except for "release".
adjacency : {"replace_one", "add_remove"}, default="replace_one"
    Neighbouring relation, that of the estimator.
ledger : PrivacyLedger or None, default=None
    Charged once for the whole search. The estimator's own must be None. The winner keeps this
    ledger: fitting it again is charged.
n_jobs : int or None, default=None
    Processes for the fits.

searches
--------
best_params_ : dict
    Parameters of the winner.
best_estimator_ : estimator
    The fitted winner. Its ``privacy_`` is that of the search. To fit it, or a clone, again costs
    its own ``epsilon``, and is charged to `ledger`.
best_score_ : float
    Its score on the validation part, with noise.
best_index_ : int
    0, its place in ``cv_results_``.
cv_results_ : dict
    Parameters and noisy score of the winner; the guarantee covers no other candidate.
n_candidates_ : int
    Number of candidates.
strategy_ : str
    How it was searched.
fit_budget_ : PureLoss or GaussianLoss
    Most that one fit of a candidate could spend; of tables and networks, ε and δ. A winner that is
    fitted again has half of the whole besides.
scorer_ : callable
    scikit-learn's scorer of that name, without noise or clipping: not for private records.
privacy_ : PrivacyReport
    The guarantee of all of this together.
classes_ : ndarray
    Labels, of classifiers.

queries
-------
guarantee : PrivacyGuarantee, PureLoss, GaussianLoss or None, default=None
    Most that all releases of this call together may cost; or give `epsilon`.
epsilon : float or None, default=None
    The guarantee's ε > 0, instead of `guarantee`: smaller is more private.
delta : float or None, default=None
    The guarantee's δ in [0, 1), beside `epsilon`; None is 1e-6, as of the estimators.
weights : array-like of shape (n_columns,) or None, default=None
    How much the squared error of each column matters: positive and public; None is all ones.
    For columns in different units, 1/(high − low)².
noise : str, default="auto"
    See :func:`~skdpnoise.mechanisms.calibrate`.
adjacency : {"replace_one", "add_remove"} or None, default=None
    The neighbouring relation; None takes that of the guarantee. With a loss, queries of several
    releases take "replace_one", others need it here.
charge : callable or None, default=None
    Called as ``charge(label, mechanism)`` before each release.
TypeError
    If the values are not real numbers.
missing : {"error", "skip"}, default="error"
    Raise an error for a missing value (None, NaN, or the like of pandas, polars and Arrow), or
    leave it out. **Public**: say "skip" wherever some record *may* have none.
n_samples : float or None, default=None
    Number of records. None takes the number of rows, which is public under "replace_one". Under
    "add_remove" None estimates it privately, with 2 % of the budget.
bounds : tuple (low, high) or None, default=None
    Public bounds, each broadcast to (n_columns,); infinite where there are none.
ledger : PrivacyLedger or None, default=None
    Charged once for the whole call, after all checks and before any noise is sampled. None charges
    nobody: the caller does the accounting.
random_state : None, int, RandomState, Generator or RandomWords, default=None
    None is the operating system's cryptographic source. Anything else is reproducible, and gives no
    privacy against those who know it.
SpreadError
    If rows in parts cannot be read, or change while they are read.

results
-------
typical_found : bool, default=True
    Whether the noise would let a column of so many normal values be found, which is a public
    fact: if so, a column that was not found is constant, or all but few of its values are.
privacy : PrivacyLoss or None, default=None
    Cost of the result; this and the following fields are known of every result of a query.
adjacency : {"replace_one", "add_remove"} or None, default=None
    Neighbouring relation of the records.
secure : bool, default=True
    Whether the noise came from the operating system's cryptographic source.
guarantee : PrivacyGuarantee or None, default=None
    The wanted guarantee; None where it was a loss.

mechanisms
----------
bounds : RowBounds
    Bounds that every row obeys.
rng : RandomWords
    Random generator.
law : TruncatedNegativeBinomial or PoissonRepetitions
    Law of K.
n_coordinates : int
    K.
n_releases : int, default=1
    Number of releases, which may be chosen adaptively.
adjacency : {"replace_one", "add_remove"}, default="replace_one"
    The neighbouring relation.
sensitivity : float
    Δ, public: the most that one record moves any utility; in their units.
epsilon : float
    ε, the cost of one selection.
monotonic : bool, default=False
    Whether a record moves all utilities in the same direction.
TypeError
    If an argument is of the wrong kind.

displays
--------
ax : matplotlib Axes or None, default=None
    Where to draw; None makes a figure.
name : str or None, default=None
    Title of the picture; None is its own.
**kwargs
    Passed to the artist, such as ``color`` or ``alpha``.
curve_kwargs : dict or None, default=None
    Passed to the line of the curve.
ax_ : matplotlib Axes
    Where it was drawn.
figure_ : matplotlib Figure
    The figure of those Axes.
estimator : estimator
    A fitted one, with ``privacy_``.
Returns
    Display
        It is drawn already.
Raises
    TypeError
        If the object is of another kind, or has no privacy report.
NotFittedError
    If it was not fitted.
target : PrivacyGuarantee or None, default=None
    A guarantee to mark.
epsilon : array-like of shape (n_points,) or None, default=None
    Where to compute δ; None is from 0 to where every δ is 1e-12.
by : {"time", "charge"}, default="time"
    Whether the horizontal axis is time or the number of the charge.

panels
------
smallest : array-like of shape (n_rows,)
    Size of the noise in each row, the least of all releases.
largest : array-like of shape (n_rows,)
    The largest of all releases.
kinds : sequence of str or None, default=None
    Names of the rows, if they are kinds of release; None if they are coordinates.
ax : matplotlib Axes, sequence of them, or None, default=None
    One Axes for each panel, or one to be divided; None makes a figure.

asked
-----
%(queries: epsilon, delta, adjacency, noise)s
same_rows : bool, default=False
    Whether the model was fitted to these records, which the result then states; both losses add.
%(queries: random_state, ledger)s
Returns
    PrivateScore
Raises
    ValueError
        If the data or a parameter are not as described, or the relation is given twice or never.
    %(queries: SpreadError)s

scores
------
y_true : array-like or RowSource of shape (n_records,)
    Labels, or targets, of the private records.
%(queries: guarantee)s
y_pred : array-like or RowSource of shape (n_records,)
    Predictions for them.
labels : array-like of shape (n_labels,)
    **Public** labels, each once. Records of other labels are in no cell, or lose the most.
target_bounds : tuple (low, high)
    **Public** bounds to which targets and predictions are clipped.
y_score : array-like or RowSource of shape (n_records,)
    Scores, the higher the more likely positive: probabilities, unless bins are given.
pos_label : str, int, float or bool, default=1
    The label of positive records; all others are negative.
bins : array-like of shape (n_bins - 1,) or None, default=None
    **Public** increasing edges between bins; None has 48 bins of probabilities, equally wide in
    log-odds from -6 to 6. Records of one bin count as ties.
mechanism : AdditiveMechanism
    The mechanism of the noise.
adjacency : {"replace_one", "add_remove"}
    Neighbouring relation of the records that were scored.
%(asked: same_rows)s

downloads
---------
Returns
    Bunch or tuple
        With these fields, of which `return_X_y` picks the first two:
data_home : str or path-like, default=None
    Folder with the data files, also with ``.gz``; then that which the environment variable
    ``SKDPNOISE_DATA`` names is searched. Files whose sha256 sums are not the published ones are
    refused. Also scikit-learn's cache folder if it has to download, which is its own by default.
return_X_y : bool, default=False
    Return ``(data, target)`` rather than a bunch.
as_frame : bool, default=False
    Return pandas objects rather than arrays. Needs the extra ``pandas``.
download_if_missing : bool, default=True
    If False, only local files are used, not even scikit-learn's cache: without them, an error.
frame : DataFrame or None
    Data and target together, if ``as_frame=True``.
feature_names : list of str
    Of the columns of data.
target_names : list of str
    Of the target.
DESCR : str
    Where the data are from.
Raises
    OSError
        If no source works (the message names both ways), or a local file is not the published one.

profiles
--------
Returns
    SensitivityProfile

dwork_roth
----------
References
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014,

checks
------
owner : str
    The class or function to name in the message.
name : str
    The parameter to name.
value : object
    The given value.

conversions
-----------
mu : float
    μ ≥ 0 of Gaussian privacy: the shift of a normal variable by a record, in standard deviations.
epsilon : float
    ε ≥ 0.
delta : float
    δ in (0, 1).
rho : float
    ρ > 0.

allocation
----------
sensitivity : SensitivityProfile
    λ and its joint bounds, for one release.
order : float
    q.
p : float, default=2.0
    Error exponent.
"""

from __future__ import annotations

import re
from functools import partial
from textwrap import dedent
from typing import Any, TypeVar, cast

_Documented = TypeVar("_Documented")
_MARK = re.compile(r"^( *)%\((\w+): ([\w, *]+)\)s$", re.MULTILINE)
_TITLES = ("Returns", "Raises", "References")  # of sections that are shared as a whole
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\S.*?)(?: :.*)?\n(?: .*\n|\n(?= ))+", re.MULTILINE)


def _entries(texts: dict[str, dict[str, str]], mark: re.Match[str]) -> str:
    """Return the entries that a mark stands for, indented as it is."""
    indent, section, names = mark.groups()
    found = "\n".join(_as_it_stands(name, texts[section][name]) for name in names.split(", "))
    return re.sub("^(?=.)", indent, found, flags=re.MULTILINE)


def _as_it_stands(name: str, text: str) -> str:
    """Return an entry, or a whole section of a docstring under its title."""
    if name not in _TITLES:
        return text
    _, _, body = text.partition("\n")
    return f"\n{name}\n{'-' * len(name)}\n{dedent(body)}"


def _read(text: str) -> dict[str, dict[str, str]]:
    """Return the entries of every section by name."""
    _, *parts = _SECTION.split(text)
    texts: dict[str, dict[str, str]] = {}
    for section, body in zip(parts[::2], parts[1::2], strict=True):
        found = _ENTRY.finditer(_MARK.sub(partial(_entries, texts), body))
        texts[section] = {entry[1]: entry[0].rstrip() for entry in found}
    paragraphs = texts.get("paragraphs", {})
    paragraphs |= {name: dedent(text.partition("\n")[2]) for name, text in paragraphs.items()}
    return texts


TEXTS = _read(__doc__ or "")  # python -OO strips it, and the docstrings with the marks


def shared_texts(documented: _Documented) -> _Documented:
    """Put the shared texts in place of the marks, in a function or a class and its methods."""
    inner = vars(documented).values() if isinstance(documented, type) else ()
    methods = (one.__func__ for one in inner if isinstance(one, classmethod | staticmethod))
    for one in (documented, *inner, *methods):
        text = getattr(one, "__doc__", None)
        if isinstance(text, str) and "%(" in text:
            cast(Any, one).__doc__ = _MARK.sub(partial(_entries, TEXTS), text)
    return documented
