"""Every step that keeps columns apart is explained in the columns and words of the input."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import rankcore as rc
from rankcore._core.inputs import take_rows
from reference.shapley import shapley_values
from texts import TEXTS
from texts import Y as STARS

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(2)
N = 160
SITES = np.array(["north", "south", "east", "west"], dtype=object)
AGE, DOSE = RNG.integers(20, 90, N).astype(float), RNG.gamma(2, 3, N).round(3) + 0.1
SITE = RNG.choice(4, N, p=[0.5, 0.3, 0.15, 0.05])
LATENT = AGE / 20 + DOSE / 4 + (SITE == 2) + 0.4 * RNG.normal(size=N)
Y = np.digitize(LATENT, np.quantile(LATENT, [0.3, 0.6, 0.85]))
NAMES = ["age", "dose", "site"]
WHOLE = pd.DataFrame({"age": AGE, "dose": DOSE, "site": SITES[SITE]})
HOLES = WHOLE.copy()
HOLES.loc[::6, "dose"] = np.nan
HOLES.loc[3::9, "age"] = np.nan
GAPS = WHOLE.copy()
GAPS.loc[::8, "site"] = None

NUMBERS, WORDS = ["age", "dose"], ["site"]
SCALED, BINS = StandardScaler(), KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
ONE_HOT = OneHotEncoder()


def table(numbers, words=ONE_HOT):
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("words", words, WORDS)])


def imputed(*after, **given):
    return table(make_pipeline(SimpleImputer(**given), *after))


# Steps by name: what they are fitted to, and whether they transform columns without the others.
STEPS = {
    "scaled": (table(SCALED), WHOLE),
    "imputed, scaled": (imputed(SCALED), HOLES),
    "scaled, imputed": (table(make_pipeline(SCALED, SimpleImputer(strategy="median"))), HOLES),
    "imputed by a constant": (imputed(SCALED, strategy="constant", fill_value=-50.0), HOLES),
    "imputed with indicator": (imputed(SCALED, add_indicator=True), HOLES),
    "indicator beside numbers": (
        table(make_union(SimpleImputer(), MissingIndicator())),
        HOLES,
    ),
    "bins": (table(BINS), WHOLE),
    "numbered bins": (table(BINS.__class__(5, encode="ordinal", strategy="uniform")), WHOLE),
    "splines": (table(SplineTransformer(n_knots=4)), WHOLE),
    "power": (table(PowerTransformer()), WHOLE),
    "quantiles": (table(QuantileTransformer(n_quantiles=20, subsample=None)), WHOLE),
    "function without inverse": (table(make_pipeline(FunctionTransformer(np.cbrt), SCALED)), WHOLE),
    "function with inverse": (
        table(make_pipeline(FunctionTransformer(np.log1p, np.expm1), RobustScaler())),
        WHOLE,
    ),
    "declared function": (
        table(FunctionTransformer(lambda X: 1 / X, feature_names_out="one-to-one")),
        WHOLE,
    ),
    "union": (table(make_union(SCALED, BINS)), WHOLE),
    "one column twice": (
        make_column_transformer((SCALED, NUMBERS), (BINS, ["age"]), (ONE_HOT, WORDS)),
        WHOLE,
    ),
    "selected": (make_pipeline(table(SCALED), VarianceThreshold(0.05), SCALED), WHOLE),
    "best": (make_pipeline(table(SCALED), SelectKBest(k=4)), WHOLE),
    "dropped": (table(SCALED, OneHotEncoder(drop="first")), WHOLE),
    "infrequent": (table(SCALED, OneHotEncoder(min_frequency=30)), WHOLE),
    "infrequent dropped": (
        table(SCALED, OneHotEncoder(min_frequency=30, drop="first")),
        WHOLE,
    ),
    "missing categories": (table(SCALED, OneHotEncoder()), GAPS),
    "unknown ignored": (table(SCALED, OneHotEncoder(handle_unknown="ignore")), WHOLE),
    "numbered categories": (table(SCALED, OrdinalEncoder(categories=[[*SITES]])), WHOLE),
    "numbered with missing": (table(SCALED, OrdinalEncoder(encoded_missing_value=-1)), GAPS),
    "numbered infrequent": (table(SCALED, OrdinalEncoder(max_categories=3)), WHOLE),
    "targets": (table(SCALED, TargetEncoder(target_type="multiclass", random_state=0)), WHOLE),
    "imputed categories": (
        table(SCALED, make_pipeline(SimpleImputer(strategy="most_frequent"), ONE_HOT)),
        GAPS,
    ),
    "frames between": (
        table(SCALED, OneHotEncoder(sparse_output=False)).set_output(transform="pandas"),
        WHOLE,
    ),
    "remainder": (
        make_column_transformer((ONE_HOT, WORDS), remainder="passthrough"),
        WHOLE,
    ),
    "by number": (make_column_transformer((SCALED, slice(0, 2)), (ONE_HOT, [-1])), WHOLE),
}
FITTED = {}


def fitted(name):
    """Return a pipeline of steps and a learner, with its rows."""
    if name not in FITTED:
        step, rows = STEPS[name]
        with warnings.catch_warnings():  # a parameter of TargetEncoder has another name in 1.9
            warnings.simplefilter("ignore", FutureWarning)
            FITTED[name] = make_pipeline(step, rc.PRank(random_state=0)).fit(rows, Y), rows
    return FITTED[name]


@pytest.fixture(params=STEPS)
def served(request):
    return fitted(request.param)


def with_values(row, name, values):
    """Return a frame of copies of a row, each with another value in a column."""
    changed = row.loc[row.index.repeat(len(values))].reset_index(drop=True)
    changed[name] = pd.Series(values, dtype=None if name in NUMBERS else object)
    return changed


def with_value(row, name, value):
    """Return a frame of one row with another value in a column."""
    return with_values(row, name, [value])


def scores(model, rows):
    return model[-1].project(model[:-1].transform(rows))


def same(a, b):
    return a == b or (pd.isna(a) and pd.isna(b))


def test_contributions_are_shapley_values_of_the_columns(served):
    model, rows = served
    some, background = rows.iloc[[3, 6, 12]], rows.iloc[40:44]
    found = rc.explain.contributions(model, some, background=background)
    assert found.feature_names == [one for one in NAMES if one in found.feature_names]
    np.testing.assert_allclose(found.scores(), scores(model, some), atol=1e-9)
    both = pd.concat([some, background], ignore_index=True)

    def score(places):
        """Score rows whose columns are from some places."""
        parts = {name: both[name].to_numpy()[places[:, j]] for j, name in enumerate(NAMES)}
        return scores(model, pd.DataFrame(parts))

    others = np.repeat(np.arange(3, 7)[:, None], 3, axis=1)
    for i in range(3):
        expected = dict(zip(NAMES, shapley_values(score, np.full(3, i), others), strict=True))
        for name, value in zip(found.feature_names, found.values[i], strict=True):
            assert value == pytest.approx(expected.pop(name), abs=1e-9)
        assert all(abs(unused) < 1e-9 for unused in expected.values())
        for name, value in zip(found.feature_names, found.data[i].tolist(), strict=True):
            assert same(value, some[name].iloc[i])


def test_changes_of_the_input_change_the_prediction(served):
    model, rows = served
    n_moved = 0
    for place in (3, 48):  # with holes in other columns
        row = rows.iloc[[place]]
        now = model.predict(row)[0]
        why = rc.explain.rank(model, row, background=rows)
        assert why.label == now
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for name, value in zip(why.feature_names, moved.tolist(), strict=True):
                known = rows[name].dropna()
                assert value is not None
                if value == value:
                    n_moved += 1
                    assert sign * (model.predict(with_value(row, name, value))[0] - now) > 0
                    if name == "site":
                        assert value in set(known)
                    else:
                        assert known.min() <= value <= known.max()
                else:
                    others = with_values(row, name, known.unique().tolist())
                    assert (sign * (model.predict(others) - now) <= 0).all()
    assert n_moved > 2


def test_missing_category_is_never_proposed():
    missing = np.arange(N) % 4 == 0
    rows = np.where(missing, None, SITES[np.arange(N) % 3])[:, None]
    model = make_pipeline(OneHotEncoder(), rc.PRank(random_state=0)).fit(rows, missing.astype(int))
    known = np.array([*SITES[:3], None], dtype=object)[:, None]
    assert model.predict(known).tolist() == [0, 0, 0, 1]
    for background in (None, rows):
        why = rc.explain.rank(model, rows[1:2], background=background)
        assert why.up[0] is not None
        assert why.up[0] != why.up[0]  # NaN: no known category raises the rank


def test_printed_numbers_change_the_prediction():
    model, rows = fitted("scaled")
    n_moved = 0
    for place in range(0, N, 16):
        row = rows.iloc[[place]]
        why = rc.explain.rank(model, row, background=rows)
        for name, _, _, up, down in why.tables()[1].rows:
            for shown, sign in ((up, 1), (down, -1)):
                if name in NUMBERS and shown != "never":
                    after = model.predict(with_value(row, name, float(shown)))[0]
                    assert sign * (after - why.label) > 0
                    n_moved += 1
    assert n_moved > 10


@pytest.mark.parametrize("name", ["bins", "splines", "union", "function without inverse"])
def test_numbers_that_cannot_be_scaled_back_move_to_the_nearest_of_the_background(name):
    model, rows = fitted(name)
    row = rows.iloc[[12]]
    now = model.predict(row)[0]
    why = rc.explain.rank(model, row, background=rows)
    j = why.feature_names.index("age")
    for moved, sign in ((why.up[j], 1), (why.down[j], -1)):
        known = np.unique(rows["age"])
        changed = pd.concat([with_value(row, "age", one) for one in known])
        moving = known[sign * (model.predict(changed) - now) > 0]
        if moving.size:
            assert abs(moved - row["age"].iloc[0]) == abs(moving - row["age"].iloc[0]).min()
    assert rc.explain.rank(model, row).up[j] is None


@pytest.mark.parametrize("imputer", [KNNImputer(), IterativeImputer(random_state=0)])
def test_imputation_from_other_columns_keeps_columns(imputer):
    rows = HOLES[NUMBERS]
    model = make_pipeline(imputer, StandardScaler(), rc.PRank(random_state=0)).fit(rows, Y)
    found = rc.explain.contributions(model, rows.iloc[:9], background=rows)
    assert found.feature_names == NUMBERS
    np.testing.assert_allclose(found.scores(), scores(model, rows.iloc[:9]), atol=1e-9)
    np.testing.assert_array_equal(found.data, rows.iloc[:9])
    for place in (0, 3, 10):
        row = rows.iloc[[place]]
        why = rc.explain.rank(model, row, background=rows)
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for name, value in zip(NUMBERS, moved.tolist(), strict=True):
                if value == value:
                    after = model.predict(with_value(row, name, value))[0]
                    assert sign * (after - why.label) > 0


def test_rows_scaled_by_themselves_are_explained_in_their_columns():
    model = make_pipeline(Normalizer(), rc.PRank(random_state=0)).fit(WHOLE[NUMBERS], Y)
    row = WHOLE[NUMBERS].iloc[[5]]
    why = rc.explain.rank(model, row, background=WHOLE[NUMBERS])
    assert why.values.tolist() == row.iloc[0].tolist()
    moved = [(name, value) for name, value in zip(NUMBERS, why.up, strict=True) if value == value]
    moved += [(n, value) for n, value in zip(NUMBERS, why.down, strict=True) if value == value]
    assert moved
    for name, value in moved:
        assert model.predict(with_value(row, name, value))[0] != why.label


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_explained_alike(library):
    pytest.importorskip(library)
    steps, rows = STEPS["imputed, scaled"]
    if library == "polars":
        import polars

        other = polars.from_pandas(rows)
    else:
        import pyarrow

        other = pyarrow.Table.from_pandas(rows, preserve_index=False)
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(other, Y)
    found = rc.explain.rank(model, take_rows(other, [6]), background=other)
    expected = rc.explain.rank(model, rows.iloc[[6]], background=rows)
    assert str(found) == str(expected)


# ------------------------------------------------------------------------ calibration, trees


def test_calibrated_pipeline_changes_by_its_own_prediction():
    model = rc.CalibratedOrdinal(make_pipeline(imputed(SCALED, add_indicator=True), rc.PRank()))
    model.fit(HOLES, Y)
    n_moved = 0
    for place in (6, 12, 50):
        row = HOLES.iloc[[place]]
        why = rc.explain.rank(model, row, background=HOLES)
        assert why.label == model.predict(row)[0]
        assert why.feature_names == NAMES
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for name, value in zip(NAMES, moved.tolist(), strict=True):
                if value == value:
                    n_moved += 1
                    after = model.predict(with_value(row, name, value))[0]
                    assert sign * (after - why.label) > 0
    assert n_moved > 2


def test_changes_of_trees_after_scaling_are_exact():
    model = make_pipeline(table(SCALED), rc.OrdinalBoost(20, max_leaf_nodes=5)).fit(WHOLE, Y)
    n_moved = 0
    for place in range(0, N, 40):
        row = WHOLE.iloc[[place]]
        why = rc.explain.rank(model, row, background=WHOLE)
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for name, value in zip(why.feature_names, moved.tolist(), strict=True):
                if value == value:
                    n_moved += 1
                    after = model.predict(with_value(row, name, value))[0]
                    assert sign * (after - why.label) > 0
    assert n_moved > 5


# ------------------------------------------------------------------------ texts

TEXT_STEPS = {
    "tf-idf": TfidfVectorizer(),
    "counts": CountVectorizer(),
    "counts, then tf-idf": make_pipeline(CountVectorizer(), TfidfTransformer(), MaxAbsScaler()),
    "pairs of words": TfidfVectorizer(ngram_range=(1, 2)),
    "best words": make_pipeline(TfidfVectorizer(), SelectKBest(k=12)),
    "presence": CountVectorizer(binary=True, stop_words=["of", "the"]),
}


def edited(text, word, present):
    """Return a text without a word or pair of words, or with it at the end."""
    words = re.findall(r"(?u)\b\w\w+\b", text.lower())
    if not present:
        return " ".join([*words, word])
    phrase = word.split()
    k = len(phrase)
    i = 0
    while i + k <= len(words):
        if words[i : i + k] == phrase:
            del words[i : i + k]
            i = max(i - k, 0)
        else:
            i += 1
    return " ".join(words)


@pytest.mark.parametrize("name", TEXT_STEPS)
def test_words_are_present_or_absent_and_change_the_prediction(name):
    model = make_pipeline(TEXT_STEPS[name], rc.PRank(random_state=0)).fit(TEXTS, STARS)
    names = model[:-1].get_feature_names_out().tolist()
    n_moved = 0
    for text in TEXTS[:6]:
        why = rc.explain.rank(model, text)
        assert why.feature_names == names
        encoded = model[:-1].transform([text]).toarray()[0]
        assert ((why.values == "present") == (encoded != 0)).all()
        assert why.contributions.sum(axis=0) + why.bases == pytest.approx(why.distances)
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for word, has, to in zip(names, encoded != 0, moved.tolist(), strict=True):
                if to is None:
                    continue
                after = model.predict([edited(text, word, has)])[0]
                assert (sign * (after - why.label) > 0) == (to == to)
                if to == to:
                    n_moved += 1
                    assert to == ("absent" if has else "present")
    assert n_moved > 3


def test_words_of_several_columns_have_the_name_of_their_column():
    rows = pd.DataFrame({"title": TEXTS[::-1], "body": TEXTS, "length": [*map(len, TEXTS)]})
    steps = make_column_transformer(
        (TfidfVectorizer(), "title"), (CountVectorizer(), "body"), (StandardScaler(), ["length"])
    )
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(rows, STARS)
    row = rows.iloc[[4]]
    why = rc.explain.rank(model, row, background=rows)
    titles = steps.fit(rows).named_transformers_["tfidfvectorizer"].get_feature_names_out()
    assert why.feature_names[: titles.size] == [f"title: {one}" for one in titles]
    assert why.feature_names[-1] == "length"
    n_moved = 0
    for moved, sign in ((why.up, 1), (why.down, -1)):
        for name, has, to in zip(why.feature_names, why.values == "present", moved, strict=True):
            if to in ("absent", "present"):
                column, word = name.split(": ")
                text = edited(row[column].iloc[0], word, has)
                after = model.predict(row.assign(**{column: [text]}))[0]
                assert sign * (after - why.label) > 0
                n_moved += 1
    assert n_moved


def test_bigrams_around_a_stop_word_are_not_changed():
    texts = ["red the blue", "blue the red", "red blue", "green the green", "blue red", "green"]
    steps = CountVectorizer(ngram_range=(1, 2), stop_words=["the"])
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(texts, [2, 0, 2, 1, 0, 1])
    for text, tried in (("red the blue", False), ("red blue", True)):
        why = rc.explain.rank(model, text)
        j = why.feature_names.index("red blue")
        assert why.values[j] == "present"
        assert (why.up[j] is not None) == (why.down[j] is not None) == tried


def test_character_n_grams_are_not_changed():
    model = make_pipeline(CountVectorizer(analyzer="char"), rc.PRank(random_state=0))
    why = rc.explain.rank(model.fit(TEXTS, STARS), TEXTS[0])
    assert set(why.values.tolist()) <= {"present", "absent"}
    assert {*why.up.tolist(), *why.down.tolist()} == {None}
    assert "never" not in str(why)


# ------------------------------------------------------------------------ errors

MIXING = {
    "PCA": (make_pipeline(StandardScaler(), PCA(2)), WHOLE[NUMBERS]),
    "PolynomialFeatures": (PolynomialFeatures(2), WHOLE[NUMBERS]),
    "Nystroem": (Nystroem(n_components=9), WHOLE[NUMBERS]),
    "FunctionTransformer": (FunctionTransformer(lambda X: X @ [[1], [2]]), AGE[:, None] * [1, 2]),
    "TruncatedSVD": (make_pipeline(TfidfVectorizer(), TruncatedSVD(3)), TEXTS),
    "HashingVectorizer": (HashingVectorizer(n_features=64), TEXTS),
    "DictVectorizer": (DictVectorizer(), WHOLE.to_dict("records")),
}


@pytest.mark.parametrize("name", MIXING)
def test_a_step_that_mixes_columns_is_named(name):
    steps, rows = MIXING[name]
    y = STARS if rows is TEXTS else Y
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(rows, y)
    with pytest.raises(TypeError, match=f"{name} makes columns that do not come from one"):
        rc.explain.global_importance(model, rows)
    # What the error advises.
    after = model[:-1].transform(rows)
    why = rc.explain.rank(model[-1], after[:1])
    assert why.label == model.predict(rows)[0]


def test_wrongly_declared_columns_of_a_step_are_rejected():
    class Doubling(OneToOneFeatureMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.column_stack([X, X])

    model = make_pipeline(StandardScaler(), Doubling(), rc.PRank(random_state=0))
    model.fit(WHOLE[NUMBERS], Y)
    with pytest.raises(TypeError, match="StandardScaler and Doubling must keep columns apart"):
        rc.explain.global_importance(model, WHOLE[NUMBERS])


def test_word_in_two_vectorizers_has_two_names():
    steps = make_union(CountVectorizer(), CountVectorizer(binary=True))
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(TEXTS, STARS)
    found = rc.explain.contributions(model, TEXTS[:3])
    assert found.feature_names == steps.get_feature_names_out().tolist()
    np.testing.assert_allclose(found.scores(), scores(model, TEXTS[:3]), atol=1e-9)
    counts = steps.transform(TEXTS[:3]).toarray()
    assert ((found.data == "present") == (counts > 0)).all()


def test_given_names_are_for_input_columns_in_order():
    steps = make_column_transformer((ONE_HOT, [2]), remainder="passthrough")
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(WHOLE.to_numpy(), Y)
    names = ["years", "milligrams", "place"]
    why = rc.explain.rank(model, WHOLE.to_numpy()[4], feature_names=names)
    assert why.feature_names == names
    assert why.values.tolist() == WHOLE.iloc[4].tolist()
    with pytest.raises(ValueError, match="one name for each of 3 features; got 2"):
        rc.explain.rank(model, WHOLE.to_numpy()[4], feature_names=names[:2])


@pytest.mark.parametrize("steps", [imputed(SCALED), make_pipeline(table(SCALED), PCA(3))])
def test_permutation_importance_of_scikit_learn_is_by_rank_loss_in_columns_of_the_input(steps):
    model = make_pipeline(steps, rc.PRank(random_state=0)).fit(WHOLE, Y)
    found = permutation_importance(model, WHOLE, Y, n_repeats=3, random_state=0)
    assert found.importances.shape == (3, 3)
    before = np.abs(model.predict(WHOLE) - Y).mean()
    rng = np.random.RandomState(np.random.RandomState(0).randint(np.iinfo(np.int32).max + 1))
    order, shuffled = np.arange(N), WHOLE.copy()
    for r in range(3):
        rng.shuffle(order)
        shuffled["age"] = shuffled["age"].to_numpy()[order]
        after = np.abs(model.predict(shuffled) - Y).mean()
        assert found.importances[0, r] == pytest.approx(after - before)
