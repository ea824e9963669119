"""Model of pairwise perceptrons: the current hypothesis, its average, and past hypotheses.

A hypothesis lasts from one mistake to the next, and each pair that it ranks correctly is a success.
The members are all past hypotheses, or the best: by successes or, if they are judged, by values
that a criterion gives them.

The functions for C programs with their own loop make single steps.
"""

from cpython.pycapsule cimport PyCapsule_New
from cython cimport final
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from rankcore._ext._forgetting cimport fade
from rankcore._ext._pair_state cimport (
    admit, count_by, end_hypothesis, fewest, place, so_far, successes as of_present
)
from rankcore._ext.online_model cimport OnlineModel
from rankcore.core cimport rc_axpy, rc_dot, rc_pair_state, rc_row

from rankcore._ext.online_model import PAST, STANDARDIZED, UNITS, Array, are_counts

# Initial room for members: at most so many, and so many numbers in them (1 MiB).
ROOM, ROOM_VALUES = 1024, 2**17


@final
cdef class PairModel(OnlineModel):
    """Model of a pairwise perceptron, which learns pairs with two ranks: winner and loser.

    ``clock`` has the successes of the current hypothesis and of all, without those in the current
    unit, and this unit. With a half-life the successes of all are those of past hypotheses, each
    times its weight, and ``past_weight`` is the sum of these weights. ``counts`` has the pairs,
    mistakes and visits of queries so far, the number of members, and the successes of the current
    hypothesis and of all in the current unit.
    ``scale`` has the factors of features while learning, by their moments, see `Moments`; all
    weights are those of features as they are, so that they stay the same when factors change. The
    factor of a constant is 0: its weight would be a sum of rounding errors.
    Without factors the axis "standardized" is empty.

    The axis "room" is the capacity for members. With a criterion, ``values`` are its values for
    them, and ``longest`` are the largest numbers of successes so far, descending.
    """

    declared = {
        "weights": Array("features", averaged=True),
        "clock": Array(3),
        "counts": Array(6, dtype="int64", added=True),
        "members": Array("room", "features", past=True),
        "successes": Array("room"),
        "born": Array("room", dtype="int64"),
        "scale": Array(STANDARDIZED, first=lambda settings: 1.0),
        "column_moments": UNITS["column_moments"],
        "column_totals": UNITS["column_totals"],
    }
    averages = True

    @classmethod
    def new(cls, n_features, settings):
        """Return a model that has seen no pairs."""
        room = max(1, min(ROOM, ROOM_VALUES // n_features))
        if settings["capacity"] is not None:
            room = min(room, settings["capacity"])
        model = cls(n_features, 2, settings, room=room)
        if not settings["standardize"]:
            model.leave_alone()
        return model

    def declare(self, arrays):
        if not self.settings["judged"]:
            return self.declared
        return {**self.declared, "values": Array("room"), "longest": Array("room")}

    cdef int bind(self) except -1:
        cdef rc_pair_state *m = &self.m
        capacity = self.settings["capacity"]
        self.limit = INT64_MAX if capacity is None else capacity
        self.judged = self.settings["judged"]
        m.weights = <double *> self.at("weights")
        m.weight_sums = <double *> self.at("weights_sums")
        m.members = <double *> self.at("members")
        m.successes = <double *> self.at("successes")
        m.born = <int64_t *> self.at("born")
        m.capacity = len(self["born"])
        m.n_features = self.n_features
        self.clock = <double *> self.at("clock")
        self.longest = <double *> self.at("longest") if self.judged else NULL
        return self.check_room()

    cdef int check_room(self) except -1:
        """Raise ValueError unless the number of members is within the capacity of their arrays."""
        if not 0 <= self.counts[3] <= self.m.capacity <= self.limit:
            raise ValueError(
                f"the model must have at most {min(self.m.capacity, self.limit)} members; got "
                f"{self.counts[3]}, and room for {self.m.capacity}"
            )
        return 0

    cdef int begin(self, object params) except -1:
        """Prepare for learning: writable arrays, the margin, and current counts."""
        cdef rc_pair_state *m = &self.m
        self.ensure_writable()
        self.check_room()
        self.computed = None
        m.margin = params.margin
        m.forgetting.gain = self.gain
        m.forgetting.past = 0 if self.past == NULL else self.past[0]
        m.streak, m.total, m.unit = self.clock[0], self.clock[1], self.clock[2]
        m.n_pairs, m.n_mistakes = self.counts[0], self.counts[1]
        m.kept, m.run, m.right = self.counts[3], self.counts[4], self.counts[5]
        return 0

    cdef void end(self) noexcept:
        cdef const rc_pair_state *m = &self.m
        self.clock[0], self.clock[1], self.clock[2] = m.streak, m.total, m.unit
        self.counts[0], self.counts[1] = m.n_pairs, m.n_mistakes
        self.counts[3], self.counts[4], self.counts[5] = m.kept, m.run, m.right
        if self.past != NULL:
            self.past[0] = m.forgetting.past

    cdef double bar(self) noexcept nogil:
        """Return the successes that a hypothesis must exceed to become a member or be judged.

        With any criterion, these are the fewest of the members that successes would choose, so that
        few hypotheses are judged.
        """
        if self.m.kept < self.limit:
            return -1.0
        return self.longest[self.limit - 1] if self.judged else self.m.successes[fewest(&self.m)]

    # ---------------------------------------------------------------- arrays

    def check(self):
        self.check_moments()
        successes = self["successes"]
        if not are_counts(self["counts"], self["born"]) or (successes < 0).any():
            raise ValueError("the counts and successes of the model must be >= 0")
        scale = self["scale"]
        if scale.size not in (0, self.n_features) or not (scale >= 0).all():
            raise ValueError("the array scale must have a factor >= 0 for each feature, or none")

    def saved(self):
        """Return the arrays that determine the model, without free room."""
        kept = self.kept
        return {
            name: array[:kept] if self.forms[name].axes[0] == "room" else array
            for name, array in OnlineModel.saved(self).items()
        }

    def grow(self, memory_limit):
        """Double the room for members; raise ValueError if it takes more than memory_limit."""
        n = len(self["born"])
        room = min(2 * max(n, 1), self.limit)
        size = (room + n) * 8 * (self.n_features + 2)  # old and new, while copied
        if self.limit == INT64_MAX and size > memory_limit:
            raise ValueError(
                f"variant='voted' has {n} hypotheses, and more require "
                f"{size / 1e9:.3g} GB, above memory_limit ({memory_limit / 1e9:.3g} GB): set "
                "max_hypotheses to keep the best"
            )
        self.widen("room", room)

    def offer(self, weights, value):
        """Make the ending hypothesis a member if the criterion's value for it is good enough.

        Among ties, the latest member is the worst.
        """
        counts, longest, now = self["counts"], self["longest"], self.present()
        kept = self.kept
        slot = kept
        if kept < self.limit:
            counts[3] += 1
            longest[kept] = now
        else:
            slot = int(np.lexsort((-self["born"], self["values"]))[0])
            longest[kept - 1] = max(now, longest[kept - 1])
        longest[: counts[3]][::-1].sort()
        if slot < kept and not value > self["values"][slot]:
            return
        self["members"][slot] = weights
        self["successes"][slot] = now
        self["born"][slot] = counts[1]
        self["values"][slot] = value

    @property
    def has_factors(self):
        """Whether features have factors."""
        return self["scale"].size > 0

    def leave_alone(self):
        """Use features as they are from now on."""
        empty = {"scale": np.empty(0), "column_moments": np.empty((4, 0))}
        self.take_arrays({**self.arrays, **empty, "column_totals": np.zeros(3)})  # with free room

    def keep_features(self, n_features):
        """Return a model of the first features."""
        arrays = {
            name: array[..., :n_features].copy()
            if {"features", STANDARDIZED} & {*self.forms[name].axes} else array
            for name, array in self.saved().items()
        }
        rows, weight, _ = self["column_totals"]
        if weight > 0:  # count the values that are not 0, those of a row by its weight
            values = rows * arrays["column_moments"][0].sum() / weight
            arrays["column_totals"] = np.array([rows, weight, min(values, rows * n_features)])
        return type(self)(n_features, 2, self.settings, arrays)

    def merge_counts(self, models, base):
        """Begin a new hypothesis: a mean of models has neither successes nor members."""
        total = base.times() + sum(one.times() - base.times() for one in models)
        if self.forgets:  # as averages and the weights of hypotheses are
            total = sum(one.times() for one in models) / len(models)
        self["clock"][...] = 0.0, total, 0.0
        self["counts"][3:] = 0

    # ---------------------------------------------------------------- predictions

    @property
    def kept(self):
        """Number of members."""
        return int(self["counts"][3])

    @property
    def n_mistakes(self):
        """Number of mistakes so far, which is that of past hypotheses."""
        return int(self["counts"][1])

    def present(self):
        """Return the successes of the current hypothesis."""
        return float(self["clock"][0] + self["counts"][4] * self["clock"][2])

    def times(self):
        """Return the successes of all hypotheses so far, over which weights are averaged.

        With a half-life, those of each are multiplied by its weight.
        """
        if self.forgets:
            return float(self["clock"][1] + (self.gain * self[PAST][0] + 1) * self.present())
        return float(self["clock"][1] + self["counts"][5] * self["clock"][2])

    def best(self, size=None):
        """Return weights and successes of the best members and the current one, best first.

        If they are judged, the current hypothesis is not, and is returned only without members.
        """
        kept, capacity = self.kept, self.settings["capacity"]
        weights, successes, born = (
            self[name][:kept] for name in ("members", "successes", "born")
        )
        merits = self["values"][:kept] if self.judged else successes
        if not (self.judged and kept):
            weights = np.vstack([weights, self["weights"]])
            successes, merits = (np.append(one, self.present()) for one in (successes, merits))
            born = np.append(born, self.n_mistakes)
        if capacity is not None:
            size = min(capacity, size or capacity)
        order = np.lexsort((born, -merits))[:size]
        return weights[order], successes[order]


cdef int32_t pair_update(
    rc_pair_state *m, rc_row winner, rc_row loser, double step, double unit
) noexcept nogil:
    cdef double before, difference = rc_dot(winner, m.weights) - rc_dot(loser, m.weights)
    cdef int64_t at
    if difference - difference != 0:
        return -1
    count_by(m, unit)
    m.n_pairs += 1
    if difference > m.margin:
        m.run += 1
        m.right += 1
        return 0
    at = place(m)
    if at >= 0:
        memcpy(admit(m, at), m.weights, m.n_features * sizeof(double))
    rc_axpy(winner, step, m.weights)
    rc_axpy(loser, -step, m.weights)
    if m.weight_sums != NULL:
        before = so_far(m) * step
        rc_axpy(winner, before, m.weight_sums)
        rc_axpy(loser, -before, m.weight_sums)
    if end_hypothesis(m):
        fade(m.weight_sums, m.n_features)
    return 1


cdef int32_t pair_average(const rc_pair_state *m, double *weights) noexcept nogil:
    cdef int64_t f
    cdef double total = so_far(m)
    if m.weight_sums == NULL:
        return -1
    for f in range(m.n_features):
        weights[f] = m.weights[f]
        if total > 0:
            weights[f] -= m.weight_sums[f] / total
    return 0


cdef int32_t pair_committee(const rc_pair_state *m, double *weights) noexcept nogil:
    cdef int64_t k, f, last = place(m), n = m.kept + (last == m.kept)
    cdef const double *member
    cdef double total = 0, count
    if m.capacity == 0:
        return -1
    for k in range(n):
        total += of_present(m) if k == last else m.successes[k]
    memset(weights, 0, m.n_features * sizeof(double))
    for k in range(n):
        count = of_present(m) if k == last else m.successes[k]
        count = count / total if total > 0 else 1.0 / n
        member = m.weights if k == last else m.members + k * m.n_features
        for f in range(m.n_features):
            weights[f] += count * member[f]
    return 0


c_functions = {
    "pair_update": PyCapsule_New(<void *> &pair_update, "pair_update", NULL),
    "pair_average": PyCapsule_New(<void *> &pair_average, "pair_average", NULL),
    "pair_committee": PyCapsule_New(<void *> &pair_committee, "pair_committee", NULL),
}
