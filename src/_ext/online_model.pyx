"""Models of online learners: arrays that are declared once, and all that follows from them.

A learner is a subclass of `OnlineModel` that declares its arrays, points its C struct to them in
``bind``, reads the parameters of its rule in ``follow``, and passes its update function to
``learns_by``. Allocation, validation, copies, averages, files, merging and the check for overflow
follow from the declarations; ``online_loop.learn`` calls the update function.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t

import copyreg
import math
from decimal import Context, Decimal
from types import MappingProxyType

import numpy as np

from rankcore._ext._candidates cimport AVERAGES, CANDIDATES, MOST_PARTS, decide_t
from rankcore._ext._forgetting cimport RC_MOST_PAST_
from rankcore.core cimport rc_counts, rc_forgetting

from rankcore._ext.moments import change_units

# Value of a scale or margin that the first rows are to determine.
UNKNOWN = -1.0
# Maximum count in a model file: more than any run counts, and small enough that further learning
# exceeds neither int64 nor the integers of float64.
MOST_COUNTED = 2**50
SUMS = "_sums"  # suffix of the name of an array's lazy sum
PAST = "past_weight"  # the weight of the examples so far in averages that forget
# Half-lives of the averages among which "auto" chooses, besides that of all examples and none.
HALF_LIVES = (30, 200, 1500)
LANES = 8  # doubles in a line of cache


class Array:
    """Declaration of an array of a model.

    Parameters
    ----------
    *axes : str or int
        Names or sizes: "features", "ranks", "tasks" (one less than ranks), or a name of its own,
        whose size is that of the given arrays, or an argument of the model.
    dtype : str
    averaged : bool
        Whether predictions use its average over examples. `merge` averages it, too.
    derived : bool
        Whether ``derive`` computes it from the other arrays; it is not saved.
    aligned : bool
        Whether a new one, of float64, is aligned to cache lines.
    added : bool
        Whether it counts examples; `merge` adds the counts of models.
    past : bool
        Whether it has copies of earlier values, or describes rows: learning changes none of it to
        infinity.
    first : callable, optional
        Function of the settings that returns the values of a new array; zeros by default.
    """

    def __init__(
        self, *axes, dtype="float64", averaged=False, derived=False, aligned=False, added=False,
        past=False, first=None,
    ):
        self.axes, self.dtype = axes, np.dtype(dtype)
        self.averaged, self.derived, self.aligned = averaged, derived, aligned
        self.added, self.past, self.first = added, past, first

    def zeros(self, shape):
        """Return a new array of zeros."""
        return zeros_by_line(shape) if self.aligned else np.zeros(shape, dtype=self.dtype)


def zeros_by_line(shape):
    """Return zeros aligned to cache lines; unaligned lanes cost up to twice as much."""
    n = math.prod(shape)
    buffer = np.zeros(n + LANES - 1)
    first = -(buffer.ctypes.data // 8) % LANES
    return buffer[first : first + n].reshape(shape)


def first_scale(settings):
    """Return the square of the constant feature; `UNKNOWN` for "auto", 0 without a constant."""
    if not settings.get("fit_intercept", True):
        return 0.0
    value = settings.get("threshold_scale") or settings["intercept_scaling"]
    return UNKNOWN if isinstance(value, str) else value**2


def first_margin(settings):
    """Return the margin; `UNKNOWN` for "auto"."""
    return UNKNOWN if isinstance(settings["margin"], str) else settings["margin"]


# Arrays of several learners: the square of the constant feature, and the margin.
SCALE = Array(1, first=first_scale)
MARGIN = Array(1, first=first_margin)
# Decaying losses of the candidates, and the one that is chosen: 0 for the last parameters, 1 for
# the average of all examples, then those of `HALF_LIVES`.
CHOICE = Array(CANDIDATES + 1, first=lambda settings: [0, 0, 0, 0, 0, 1])


# Offset that units add to thresholds on a lattice, whose steps are integers.
OFFSET = Array(1, averaged=True)
# Arrays of learners that standardise rows: see `Moments` and `Units` in
# ``_core/standardization``. Their axis is empty if all rows are left alone for good.
STANDARDIZED = "standardized"
RAW_UNITS = [[0.0], [1.0]]
UNITS = {
    "column_moments": Array(4, STANDARDIZED, past=True),
    "column_totals": Array(3),
    "units": Array(2, STANDARDIZED, past=True, first=lambda settings: RAW_UNITS),
    # 1 / deviation, -center / deviation
    "unit_factors": Array(2, STANDARDIZED, past=True, derived=True),
}


def are_counts(*arrays):
    """Return whether all numbers are from 0 to `MOST_COUNTED`."""
    return all(((array >= 0) & (array <= MOST_COUNTED)).all() for array in arrays)


def gain_of(half_life):
    """Return by what fraction weights of examples grow, so that they double in a half-life.

    In decimal numbers, so that it is the same on every platform.
    """
    exact = Context(prec=150)
    growth = exact.power(2, exact.divide(1, Decimal(half_life)))
    return float(exact.subtract(growth, 1))


def averages(last, sums, t):
    """Compute averages of arrays over examples of total weight t, from their lazy sums."""
    t = np.where(t > 0, t, 1)
    if sums.dtype.kind == "i":
        # One division of exact integers, so that equal averages are equal and the order is kept.
        return np.asarray((last * t - sums) / t)
    return np.asarray(last - sums / t)


def check_ascending(arrays, *names, axis=-1):
    """Raise ValueError unless arrays ascend along an axis, from rank to rank."""
    for name in names:
        if (np.diff(arrays[name], axis=axis) < 0).any():
            raise ValueError(f"the {name} of the model must ascend from rank to rank")


def check_steps(arrays, axis=-1):
    """Raise ValueError unless steps of thresholds ascend along an axis, and are countable."""
    if not are_counts(np.maximum(arrays["steps"], -arrays["steps"])):
        raise ValueError(f"the thresholds of the model moved by more than {MOST_COUNTED} steps")
    check_ascending(arrays, "steps", axis=axis)


cdef class OnlineModel:
    """Model of an online learner of ordered labels, which owns its arrays.

    Parameters
    ----------
    n_features : int
    n_ranks : int
    settings : dict
        Parameters that are built into the arrays.
    arrays : mapping of str to ndarray, optional
        Arrays by name, as declared; derived ones are computed. By default those of a new model.
    **sizes : int
        Sizes of further axes of a new model.

    Raises
    ------
    ValueError
        If an array is missing, or has another shape, dtype or order than declared.
    """

    # Arrays by name, except for the sums of averaged arrays and ``counts``.
    declared = {}
    # Names of weights that depend on the units of rows, the thresholds or intercepts that belong to
    # them, and the sign of the shift of these that `change_units` returns.
    folds = ()
    # Setting on which averages are computed.
    averaged_by = "average"

    def __cinit__(self):
        self.checked = NULL

    def __dealloc__(self):
        PyMem_Free(self.checked)

    def __init__(self, n_features, n_ranks, settings, arrays=None, **sizes):
        if n_features < 1 or n_ranks < 2:
            raise ValueError(
                f"a model requires n_features >= 1 and n_ranks >= 2; got {n_features} and {n_ranks}"
            )
        self.n_features, self.n_ranks, self.settings = n_features, n_ranks, dict(settings)
        if arrays is None:
            arrays = {}
            sizes[STANDARDIZED] = n_features
            for name, form in self._all_forms({}).items():
                arrays[name] = form.zeros(self._shape(form, sizes))
                if form.first is not None:
                    arrays[name][...] = form.first(settings)
        self.take_arrays(arrays)

    def declare(self, arrays):
        """Return the declarations of arrays by name, if they depend on settings or on arrays."""
        return self.declared

    def _all_forms(self, arrays):
        forms = {}
        for name, form in self.declare(arrays).items():
            forms[name] = form
            if form.averaged and self.averages:
                dtype = "float64" if self.forgets else form.dtype
                several = (AVERAGES,) if self.chooses else ()
                forms[name + SUMS] = Array(*form.axes, *several, dtype=dtype, aligned=form.aligned)
        if self.forgets:
            forms[PAST] = Array(AVERAGES if self.chooses else 1)
        if self.chooses:
            forms["choice"] = CHOICE
        if self.standardizes:
            forms |= UNITS
        forms.setdefault("counts", Array(3, dtype="int64", added=True))
        return forms

    def _shape(self, form, sizes):
        size_of = {
            **sizes, "features": self.n_features, "ranks": self.n_ranks, "tasks": self.n_ranks - 1
        }
        return tuple(size_of[axis] if isinstance(axis, str) else axis for axis in form.axes)

    def take_arrays(self, arrays):
        """Replace the arrays by others of the declared forms, which the model then owns."""
        self.learner.update, self.n_checked = NULL, 0
        self.candidates.active = False
        self.gain = 0.0
        if self.forgets and not self.chooses:
            self.gain = gain_of(self.settings["half_life"])
        forms, taken, sizes = self._all_forms(arrays), {}, {}
        for name, form in forms.items():
            if form.derived:
                continue
            if name not in arrays:
                raise ValueError(f"the array {name} is missing")
            array = arrays[name]
            size_of = dict(zip(form.axes, array.shape, strict=False))
            for axis in form.axes:  # if not fixed, the size in the first array with the axis
                sizes.setdefault(axis, size_of.get(axis, 0))
            wanted = self._shape(form, sizes)
            if array.shape != wanted or array.dtype != form.dtype:
                raise ValueError(
                    f"the array {name} has shape {array.shape} and dtype {array.dtype}; expected "
                    f"{wanted} and {form.dtype}, for {self.n_features} features and {self.n_ranks} "
                    "ranks"
                )
            if not array.flags.c_contiguous:
                raise ValueError(f"the array {name} must be in C order")
            taken[name] = array
        if sizes.get(STANDARDIZED, 0) not in (0, self.n_features):
            raise ValueError(
                f"the array column_moments has {sizes[STANDARDIZED]} columns; expected none, or "
                f"one for each of {self.n_features} features"
            )
        for name, form in forms.items():
            if form.derived:
                taken[name] = form.zeros(self._shape(form, sizes))
        self.forms, self.held, self.arrays = forms, taken, MappingProxyType(taken)
        self.writable = all(array.flags.writeable for array in taken.values())
        self.computed = None
        self.derive()
        self.counts = <int64_t *> self.at("counts")
        self.past = <double *> self.at(PAST) if not self.chooses else NULL
        self.bind()
        if self.chooses:
            self._bind_candidates()
        self._bind_units()
        self._bind_checked()

    def _bind_candidates(self):
        """Point to the averages of several half-lives, and to scratch."""
        cdef Candidates *k = &self.candidates
        cdef int32_t p = 0
        cdef int64_t n_weights, n_others = 0
        for name, form in self.forms.items():
            if not form.averaged:
                continue
            array = self[name]
            if "features" in form.axes:
                k.weights = <const double *> self.at(name)
                k.weight_sums = <double *> self.at(name + SUMS)
                k.width = array.size // self.n_features
                continue
            if p == MOST_PARTS:
                raise TypeError(f"{type(self).__name__} has too many averaged arrays")
            k.parts[p].whole = <const int64_t *> self.at(name) if array.dtype.kind == "i" else NULL
            k.parts[p].real = <const double *> self.at(name) if array.dtype.kind == "f" else NULL
            k.parts[p].sums = <double *> self.at(name + SUMS)
            k.parts[p].n = array.size
            n_others += array.size
            p += 1
        k.n_parts = p
        k.n_features = self.n_features
        k.past = <double *> self.at(PAST)
        k.losses = <double *> self.at("choice")
        k.gains[0] = 0.0
        for p in range(AVERAGES - 1):
            k.gains[p + 1] = gain_of(HALF_LIVES[p])
        n_weights = self.n_features * k.width
        self.candidate_scratch = np.empty(n_weights + (AVERAGES + 2) * k.width + 2 * n_others)
        k.before = <double *> <Py_ssize_t> self.candidate_scratch.ctypes.data
        k.scores = k.before + n_weights
        k.others = k.scores + (AVERAGES + 2) * k.width
        k.state = self.learner.state
        k.active = k.decide != NULL and self.learner.update != NULL
        if not k.active:
            raise TypeError(f"{type(self).__name__} cannot choose a half-life")

    def _bind_units(self):
        """Point to the units and the moments of rows."""
        cdef Standard *s = &self.standard
        cdef double *units = <double *> self.at("units")
        cdef double *factors = <double *> self.at("unit_factors")
        if units == NULL:
            s.active = s.follows = s.due = False
            s.ready = s.ahead = 0
            return
        s.moments.weights = <double *> self.at("column_moments")
        s.moments.origins = s.moments.weights + self.n_features
        s.moments.sums = s.moments.origins + self.n_features
        s.moments.squares = s.moments.sums + self.n_features
        s.moments.totals = <double *> self.at("column_totals")
        s.moments.n_features = self.n_features
        s.units.center = units
        s.units.factor = factors
        s.units.blank = factors + self.n_features
        s.units.n_features = self.n_features
        if self.scratch is None:
            self.scratch = np.empty(ROWS_AHEAD * self.n_features)
        s.rows = <double *> <Py_ssize_t> self.scratch.ctypes.data
        self._read_units()

    def _read_units(self):
        """Compute the factors that follow from the units."""
        center, deviation = self["units"]
        factors = self["unit_factors"]
        np.divide(1, deviation, out=factors[0])
        np.multiply(0 - center, factors[0], out=factors[1])  # never -0
        self.standard.active = bool((self["units"] != RAW_UNITS).any())
        self.standard.ready = 0

    def _bind_checked(self):
        """List the float64 arrays that learning may make infinite."""
        cdef Checked *check
        PyMem_Free(self.checked)
        self.checked = <Checked *> PyMem_Malloc((len(self.forms) + 1) * sizeof(Checked))
        if self.checked == NULL:
            raise MemoryError
        for name, array in self.arrays.items():
            form = self.forms[name]
            if form.past or array.dtype != np.float64 or array.size == 0:
                continue
            check = &self.checked[self.n_checked]
            check.data = <const double *> self.at(name)
            check.by_feature = "features" in form.axes
            axis = form.axes.index("features") if check.by_feature else array.ndim
            check.outer = math.prod(array.shape[:axis])
            check.inner = math.prod(array.shape[axis + 1 :])
            self.n_checked += 1

    def __getstate__(self):
        return {
            "n_features": self.n_features, "n_ranks": self.n_ranks, "settings": self.settings,
            "arrays": self.saved(),
        }

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __setstate__(self, state):
        self.__init__(**state)

    def __eq__(self, other):
        """Return whether another model has the same class, settings and arrays, bit for bit."""
        if type(self) is not type(other) or self.settings != other.settings:
            return False
        mine, others = self.saved(), other.saved()
        return mine.keys() == others.keys() and all(
            array.shape == others[name].shape and array.tobytes() == others[name].tobytes()
            for name, array in mine.items()
        )

    # ---------------------------------------------------------------- what a subclass defines

    cdef int bind(self) except -1:
        """Point to the arrays, and call ``learns_by``; called again when they are replaced."""
        return 0

    cdef int follow(self, object params) except -1:
        """Read what the rule needs besides arrays, from attributes of the estimator."""
        return 0

    def derive(self):
        """Compute the derived arrays."""

    def check(self):
        """Raise ValueError if the values of arrays are not possible."""

    def times(self):
        """Return the number of examples over which arrays are averaged, or their weight."""
        if self.chooses:
            return float(self[PAST][max(self.chosen - 1, 0)])
        return float(self[PAST][0]) if self.forgets else self.t

    def merge_counts(self, models, base):
        """Set counts for the mean of models that continued ``base``, where a sum would be wrong."""

    def renew(self):
        """Recompute, for a mean of models, the values that learning updates step by step."""

    def compute(self):
        """Return the arrays for predictions, in the units of rows as given."""
        means = {name: self.mean(name) for name, form in self.forms.items() if form.averaged}
        return tuple(self.folded(means).values())

    def make_room(self):
        """Enlarge the arrays if learning stopped for lack of capacity; return whether it did."""
        return False

    # ---------------------------------------------------------------- arrays

    cdef void *at(self, str name) except? NULL:
        """Return a pointer to an array; NULL if it is missing or empty."""
        cdef Py_buffer view
        cdef void *address
        array = self.arrays.get(name)
        if array is None or array.size == 0:
            return NULL
        # In C: no signal comes between the arrays of a model and their pointers.
        PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
        address = view.buf
        PyBuffer_Release(&view)
        return address

    def __getitem__(self, name):
        return self.arrays[name]

    @property
    def t(self):
        """Examples seen."""
        return int(self.arrays["counts"][0])

    @property
    def averages(self):
        """Whether predictions use averages."""
        return bool(self.settings.get(self.averaged_by))

    @property
    def forgets(self):
        """Whether averages forget: examples weigh less the more followed them."""
        return self.averages and self.settings.get("half_life") is not None

    @property
    def chooses(self):
        """Whether the half-life of averages is chosen while learning."""
        return self.forgets and self.settings["half_life"] == "auto"

    @property
    def chosen(self):
        """Number of the chosen candidate, see `CHOICE`."""
        return int(self["choice"][CANDIDATES])

    @property
    def half_life(self):
        """Half-life of averages: 0 for the last parameters, infinity for all examples alike."""
        if self.chooses:
            return (0.0, math.inf, *map(float, HALF_LIVES))[self.chosen]
        if self.forgets:
            return float(self.settings["half_life"])
        return math.inf if self.averages else 0.0

    def set_half_life(self, half_life):
        """Let averages forget at another rate from now on.

        The average so far weighs as one that has always forgotten at this rate.
        """
        self.settings["half_life"] = half_life
        self.gain = gain_of(half_life)

    def mean(self, name):
        """Return the average of an array over all examples; without averaging, the array."""
        last = self.arrays[name]
        if not self.averages or (self.chooses and self.chosen == 0):
            return last
        sums = self.arrays[name + SUMS]
        mean = averages(last, sums[..., self.chosen - 1] if self.chooses else sums, self.times())
        if self.forgets and last.dtype.kind == "i":
            # Steps of thresholds: in order, but for rounding.
            axis = self.forms[name].axes.index("tasks")
            np.maximum.accumulate(mean, axis=axis, out=mean)
        return mean

    def parameters(self):
        """Return the arrays to predict with; computed once after each change."""
        if self.computed is None:
            self.computed = self.compute()
        return self.computed

    def saved(self):
        """Return the arrays that determine the model."""
        derived = {name for name, form in self.forms.items() if form.derived}
        return {name: array for name, array in self.arrays.items() if name not in derived}

    def copy(self):
        """Return an independent copy."""
        arrays = {name: array.copy() for name, array in self.saved().items()}
        return type(self)(self.n_features, self.n_ranks, self.settings, arrays)

    def check_mixes(self):
        """Raise ValueError if models that continue this one cannot be mixed."""
        if self.chooses:
            raise ValueError(
                "half_life='auto' chooses by the losses of one stream, and its models cannot be "
                "merged or learned on a cluster: set half_life to a number or None"
            )

    def mixed(self, models, shares, base):
        """Return the mean of models that continued ``base``, of which this is one.

        ``shares`` weigh the current values; in averages all examples have the same weight. Averages
        that forget are weighed by ``shares``, too: an example is as old as its own model says.
        """
        self.check_mixes()
        mixed = self.copy()
        for name, form in self.forms.items():
            if form.added:
                mixed[name][...] = base[name] + sum(model[name] - base[name] for model in models)
        mixed.merge_counts(models, base)
        if self.forgets:
            mixed[PAST][...] = sum(share * model[PAST] for share, model in zip(shares, models))
        for name, form in self.forms.items():
            if not form.averaged:
                continue
            mean = sum(share * model[name] for share, model in zip(shares, models, strict=True))
            # Rounding is monotone: it keeps the order of thresholds.
            mixed[name][...] = mean if form.dtype.kind == "f" else np.rint(mean)
            if self.forgets:
                average = sum(share * model.mean(name) for share, model in zip(shares, models))
                mixed[name + SUMS][...] = mixed.times() * (mixed[name] - average)
            elif self.averages:
                # The sums represent the total of the parameter over all examples so far.
                with np.errstate(over="ignore", invalid="ignore"):  # infinity is detected later
                    before = base.total(name)
                    total = before + sum(model.total(name) - before for model in models)
                    mixed[name + SUMS][...] = mixed.times() * mixed[name] - total
        mixed.renew()
        mixed.derive()
        return mixed

    def total(self, name):
        """Return the sum of an averaged array over all examples."""
        return self.times() * self[name] - self[name + SUMS]

    def by_feature(self):
        """Return the arrays with a value or vector for each feature, and the axis of features."""
        return {
            name: (array, self.forms[name].axes.index("features"))
            for name, array in self.arrays.items() if "features" in self.forms[name].axes
        }

    def widen(self, axis, size):
        """Enlarge the arrays along an axis by zeros, which take no memory until they are set."""
        self.take_arrays(self._enlarged({axis: size}))

    def wider(self, n_features, below=0, above=0):
        """Return a model with more features, as if it had seen zeros in them, and more ranks.

        It may share arrays with this model, which must not learn any more. Raises TypeError for
        learners that learn from a declared rank before its first row.
        """
        if below or above:
            raise TypeError(
                "only OrdinalLogistic takes further ranks with grow=True: other learners move the "
                "threshold or weights of a rank before it has a row; declare all ranks as classes "
                "in the first call"
            )
        return type(self)(n_features, self.n_ranks, self.settings, self._with_features(n_features))

    def _with_features(self, n_features):
        return self._enlarged({"features": n_features, STANDARDIZED: n_features})

    def _enlarged(self, sizes):
        """Return the arrays with larger axes, whose new entries are those of a new model.

        The axis "standardized" stays empty if it is.
        """
        arrays = self.saved()
        for name, array in arrays.items():
            form = self.forms[name]
            shape = tuple(
                sizes.get(axis, n) if n or axis != STANDARDIZED else 0
                for axis, n in zip(form.axes, array.shape, strict=True)
            )
            if shape != array.shape:
                arrays[name] = form.zeros(shape)
                if form.first is not None:
                    arrays[name][...] = form.first(self.settings)
                arrays[name][tuple(map(slice, array.shape))] = array
        return arrays

    def reshape(self, change):
        """Call a function that may replace arrays of a dict; return whether it did.

        It replaces them one by one, so that no second copy of all is in memory.
        """
        changed = True
        try:
            changed = change(self.held)
        finally:
            if changed:
                self.take_arrays(self.saved())

    def ensure_writable(self):
        """Copy read-only arrays, such as those of a model mapped by joblib."""
        if not self.writable:
            self.take_arrays({
                name: array if array.flags.writeable else array.copy()
                for name, array in self.saved().items()
            })

    def is_finite(self, const int32_t[::1] columns=None):
        """Return whether the arrays are finite, if only those of ``columns`` may have changed."""
        cdef bint few = columns is not None and columns.shape[0] < self.n_features
        cdef const int32_t *first = NULL
        cdef int64_t i, n = columns.shape[0] if few else self.n_features
        if few:
            for i in range(n):
                if not 0 <= columns[i] < self.n_features:
                    raise ValueError(f"the model has no column {columns[i]}")
            if n:
                first = &columns[0]
        with nogil:
            few = self.finite(first, n)
        return bool(few)

    cdef bint finite(self, const int32_t *columns, int64_t n) noexcept nogil:
        """Return whether some columns, or all if ``columns`` is NULL, and the rest are finite."""
        cdef const Checked *check
        if self.standard.active:  # standardised rows are dense
            columns = NULL
            n = self.n_features
        cdef const double *at
        cdef int64_t o, k, i, width
        cdef int32_t c
        cdef double sum = 0  # NaN if a value is infinite or NaN
        for c in range(self.n_checked):
            check = &self.checked[c]
            if not check.by_feature:
                for i in range(check.outer * check.inner):
                    sum += check.data[i] - check.data[i]
                continue
            width = check.inner
            for o in range(check.outer):
                for k in range(n):
                    at = check.data + (
                        o * self.n_features + (k if columns == NULL else columns[k])
                    ) * width
                    for i in range(width):
                        sum += at[i] - at[i]
        return sum == 0

    # ---------------------------------------------------------------- units

    @property
    def standardizes(self):
        """Whether rows are standardised, unless they are left alone."""
        return bool(self.folds and self.settings.get("standardize"))

    @property
    def has_units(self):
        """Whether there are moments and units, which rows that are left alone do not need."""
        return "units" in self.forms and self["units"].size > 0

    @property
    def rows_change(self):
        """Whether rows are standardised before they are learned."""
        return bool(self.standard.active)

    @property
    def follows(self):
        """Whether the moments follow the rows that are learned, as in a stream."""
        return bool(self.standard.follows)

    @follows.setter
    def follows(self, bint value):
        self.standard.follows = value and self.standard.rows != NULL and self.has_units
        self.standard.ahead = self.standard.ready = self.standard.due = 0

    @property
    def rows_done(self):
        """Whether the rows that are learned come in the units of the model."""
        return bool(self.standard.done)

    @rows_done.setter
    def rows_done(self, bint value):
        self.standard.done = value

    def folded(self, arrays):
        """Return a copy of a dict of arrays whose weights include the units of rows."""
        if self.standard.active:
            raw = np.zeros(self.n_features), np.ones(self.n_features)
            arrays = self._in_units(arrays, raw)
        return arrays

    def _in_units(self, arrays, units):
        """Return a copy of a dict of arrays in which those of `folds` are in other units."""
        changed = dict(arrays)
        for weights, offset, sign in self.folds:
            if weights in arrays and offset in arrays:
                axis = self.forms[weights].axes.index("features")
                changed[weights], gained = change_units(
                    arrays[weights], axis, self["units"], units
                )
                if gained.size == arrays[offset].size:  # else one for all ranks
                    gained = gained.reshape(arrays[offset].shape)
                changed[offset] = arrays[offset] + sign * gained
        return changed

    def refold(self, center, deviation):
        """Change the units of rows, so that every row keeps its scores.

        Lazy sums change by the same linear rule, so that averages keep their scores, too.
        """
        units = np.asarray(center, dtype=np.float64), np.asarray(deviation, dtype=np.float64)
        if np.array_equal(self["units"], units):
            return
        names = {name for weights, offset, _ in self.folds for name in (weights, offset)}
        last = {name: self[name] for name in names}
        changed = self._in_units(last, units)
        if self.averages:
            averaged = {name for name in names if name + SUMS in self.forms}
            sums = {name: self[name + SUMS] for name in averaged}
            changed |= {
                name + SUMS: array for name, array in self._in_units(sums, units).items()
            }
        for name, array in changed.items():
            self[name][...] = array
        self.set_units(*units)

    def set_units(self, center, deviation):
        """Set the units of rows, and keep weights and thresholds as numbers in these units."""
        self["units"][...] = center, deviation
        self._read_units()
        self.computed = None

    def restart(self):
        """Reset weights and thresholds, but neither counts nor moments."""
        names = {name for weights, offset, _ in self.folds for name in (weights, offset)}
        names |= {name for name, form in self.forms.items() if form.averaged}
        names |= {"steps", "totals"} & self.forms.keys()
        for name in names:
            self[name][...] = 0
            if name + SUMS in self.forms:
                self[name + SUMS][...] = 0
        self.derive()
        self.computed = None

    def leave_alone(self):
        """Learn later rows as they are, permanently: moments and units are no longer needed."""
        self.refold(np.zeros(self.n_features), np.ones(self.n_features))
        arrays = self.saved()
        for name in ("column_moments", "units"):
            arrays[name] = np.empty((len(arrays[name]), 0))
        self.take_arrays(arrays)

    def check_past(self):
        """Raise ValueError if the weight of examples in averages is not possible."""
        if not self.forgets:
            return
        if not ((self[PAST] >= 0) & (self[PAST] <= RC_MOST_PAST_)).all():
            raise ValueError(
                f"the array {PAST} must be from 0 to {RC_MOST_PAST_:.3g}; got {self[PAST]}"
            )
        if self.chooses and not (
            (self["choice"] >= 0).all() and self["choice"][CANDIDATES] in range(CANDIDATES)
        ):
            raise ValueError(
                f"the array choice must have losses >= 0 and the number of a candidate below "
                f"{CANDIDATES}; got {self['choice']}"
            )

    def check_units(self):
        """Raise ValueError if the values of units and moments are not possible."""
        if not self.standardizes:
            return
        self.check_moments()
        if not (self["units"][1] > 0).all():
            raise ValueError("the deviations of columns must be > 0")

    def check_moments(self):
        """Raise ValueError if the moments are not those of any rows."""
        rows, weight, values = self["column_totals"]
        if not (rows >= 0 and weight >= 0 and 0 <= values <= rows * self.n_features):
            raise ValueError(
                "the totals of the moments must be a number of rows, their weight, and a number of "
                f"values; got {rows}, {weight} and {values}"
            )
        if not (self["column_moments"][0] >= 0).all():
            raise ValueError("the weights of moments must be >= 0")

    # ---------------------------------------------------------------- learning

    cdef int learns_by(
        self, update_t update, weighted_t weighted, void *state, rc_counts *seen,
        rc_forgetting *forgetting=NULL
    ) except -1:
        """Set the functions that learn a row, their state, its counts and weights of examples."""
        self.learner.forgetting = forgetting
        self.learner.update = update
        self.learner.weighted = weighted
        self.learner.state = state
        self.learner.seen = seen
        return 0

    cdef void *sums_at(self, str name) except? NULL:
        """Return a pointer to the lazy sum of an array; NULL if the learner does not add to it."""
        return NULL if self.chooses else self.at(name + SUMS)

    cdef int decides_by(self, decide_t decide) except -1:
        """Set the function that decides on a rank, so that a half-life can be chosen."""
        self.candidates.decide = decide
        return 0

    cdef int begin(self, object params) except -1:
        """Prepare for learning rows: writable arrays, current parameters and counts."""
        if self.learner.update == NULL:
            raise TypeError(f"{type(self).__name__} has no arrays to learn in, or no rule in C")
        if not self.writable:
            self.ensure_writable()
        self.computed = None
        self.follow(params)
        self.learner.seen.t = self.counts[0]
        self.learner.seen.rank_loss = self.counts[1]
        self.learner.seen.mistakes = self.counts[2]
        if self.learner.forgetting != NULL:
            self.learner.forgetting.gain = self.gain
            self.learner.forgetting.past = 0 if self.past == NULL else self.past[0]
        return 0

    cdef void end(self) noexcept:
        """Store the counts that learning has advanced."""
        self.counts[0] = self.learner.seen.t
        self.counts[1] = self.learner.seen.rank_loss
        self.counts[2] = self.learner.seen.mistakes
        if self.past != NULL:
            self.past[0] = self.learner.forgetting.past

    def changed(self):
        """Discard what was computed from arrays that have changed."""
        self.computed = None
