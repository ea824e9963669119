"""PRank that keeps its past hypotheses, each with the number of examples it survived.

Voting after Freund and Schapire ("Large Margin Classification Using the Perceptron Algorithm",
1999). All hypotheses are kept up to a limit, then those with the most votes. The arrays grow
between two calls when they are full.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

import numpy as np

from rankcore._ext._prank cimport count, prank_step, too_close
from rankcore._ext._units cimport rc_units
from rankcore._ext.online_model cimport OnlineModel, update_t
from rankcore.core cimport RC_TIE_CRAMMER, RC_TIE_STRICT, rc_dot, rc_prank_state, rc_rank, rc_row

from rankcore._ext.online_model import (
    MARGIN, MOST_COUNTED, SCALE, Array, are_counts, check_steps
)

# Initial capacity for past hypotheses.
FIRST_ROOM = 16


cdef struct VotedState:
    rc_prank_state prank
    double margin
    double offset
    const rc_units *units  # NULL for rows as they are
    double *weights  # capacity * n_features: past hypotheses
    double *thresholds  # capacity * (n_ranks - 1)
    int64_t *votes  # capacity: examples each survived
    int64_t *born  # capacity: the number of each hypothesis, from 0
    int64_t *progress  # [hypotheses kept, votes of the current one, hypotheses so far, limit]
    int64_t capacity
    int64_t fewest  # at most the votes of any hypothesis kept, which only grow
    int64_t first_vote  # votes a hypothesis is born with


cdef void _keep(VotedState *m, int64_t slot) noexcept nogil:
    cdef int64_t i, d = m.prank.n_features, tasks = m.prank.n_ranks - 1
    cdef double offset = m.offset, weight
    for i in range(d):
        weight = m.prank.weights[i]
        if m.units != NULL:
            weight *= m.units.factor[i]
            offset += weight * m.units.center[i]
        m.weights[slot * d + i] = weight
    for i in range(tasks):
        m.thresholds[slot * tasks + i] = m.prank.thresholds[i] + offset
    m.votes[slot] = m.progress[1]
    m.born[slot] = m.progress[2]


cdef int64_t _slot(
    const int64_t *votes, const int64_t *born, const int64_t *progress,
    int64_t *fewest,  # out, if there is no free slot: the fewest votes
) noexcept nogil:
    """Return the slot for the current hypothesis: free, with the fewest votes, or none (-1).

    The slot with the fewest votes, the youngest of ties, is replaced only by more votes.
    """
    cdef int64_t i, least = 0
    if progress[0] < progress[3]:
        return progress[0]
    for i in range(1, progress[0]):
        if votes[i] < votes[least] or (votes[i] == votes[least] and born[i] > born[least]):
            least = i
    fewest[0] = votes[least]
    return least if progress[1] > votes[least] else -1


cdef void _end_hypothesis(VotedState *m) noexcept nogil:
    """Store the current hypothesis, which is about to change, if it qualifies."""
    cdef int64_t slot
    # Most hypotheses end after few votes: they are not looked up among those kept.
    if m.progress[0] < m.progress[3] or m.progress[1] > m.fewest:
        slot = _slot(m.votes, m.born, m.progress, &m.fewest)
        if slot >= 0:
            _keep(m, slot)
            if slot == m.progress[0]:
                m.progress[0] += 1
    m.progress[1] = m.first_vote
    m.progress[2] += 1


cdef int32_t voted_update(VotedState *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double score = rc_dot(x, m.prank.weights) - m.offset
    cdef int32_t predicted
    if score - score != 0 or not 0 <= rank < m.prank.n_ranks:
        return -1
    if not too_close(score, rank, m.prank.n_ranks, m.prank.thresholds, m.margin):
        predicted = rc_rank(m.prank.thresholds, m.prank.n_ranks, score)
        m.progress[1] += 1
        count(&m.prank.seen, predicted, rank)
        return predicted
    if m.progress[0] == m.capacity < m.progress[3]:
        return -1  # the arrays must grow first
    _end_hypothesis(m)
    return prank_step(&m.prank, x, rank, m.margin, m.offset)


@final
cdef class VotedModel(OnlineModel):
    """PRank that keeps its hypotheses and how many examples each survived.

    ``hypotheses``, ``cuts``, ``votes`` and ``born`` are past ones, in the units of the rows as they
    come; ``progress`` has how many are kept, the votes of the current one, how many there have
    been, and how many are kept at most. The axis "room" is grown by `make_room`.
    """

    declared = {
        "weights": Array("features"),
        "steps": Array("tasks", dtype="int64"),
        "thresholds": Array("tasks", derived=True),  # without the offset
        "offset": Array(1),
        "hypotheses": Array("room", "features", 1, past=True),  # tiles of one
        "cuts": Array("room", "tasks", past=True),
        "votes": Array("room", dtype="int64"),
        "born": Array("room", dtype="int64"),
        "progress": Array(4, dtype="int64"),
        "scale": SCALE,
        "margin": MARGIN,
    }
    folds = (("weights", "offset", 1),)

    cdef VotedState m
    cdef const double *scale
    cdef const double *margin
    cdef const double *offset

    @classmethod
    def new(cls, n_features, n_ranks, settings, limit):
        """Return a model without hypotheses, which keeps at most ``limit``; None for all."""
        model = cls(n_features, n_ranks, settings, room=0)
        model["progress"][3] = MOST_COUNTED if limit is None else limit
        return model

    cdef int bind(self) except -1:
        cdef VotedState *m = &self.m
        m.prank.weights = <double *> self.at("weights")
        m.prank.steps = <int64_t *> self.at("steps")
        m.prank.thresholds = <double *> self.at("thresholds")
        m.prank.weight_sums = NULL
        m.prank.step_sums = NULL
        m.prank.real_step_sums = NULL
        m.prank.n_features = self.n_features
        m.prank.n_ranks = self.n_ranks
        m.weights = <double *> self.at("hypotheses")
        m.thresholds = <double *> self.at("cuts")
        m.votes = <int64_t *> self.at("votes")
        m.born = <int64_t *> self.at("born")
        m.progress = <int64_t *> self.at("progress")
        m.capacity = len(self["votes"])
        if not 0 <= m.progress[0] <= m.capacity:
            raise ValueError(
                f"the votes must be of at most {m.capacity} hypotheses; got {m.progress[0]}"
            )
        m.fewest = -1
        m.first_vote = self.settings["count_init"]
        self.scale = <const double *> self.at("scale")
        self.margin = <const double *> self.at("margin")
        self.offset = <const double *> self.at("offset")
        return self.learns_by(<update_t> voted_update, NULL, m, &m.prank.seen)

    cdef int follow(self, object params) except -1:
        self.m.prank.scale = self.scale[0]
        self.m.margin = self.margin[0]
        self.m.offset = self.offset[0]
        self.m.units = &self.standard.units if self.standard.active else NULL
        self.m.prank.tie = RC_TIE_STRICT if params.tie == "strict" else RC_TIE_CRAMMER
        return 0

    def derive(self):
        self["thresholds"][...] = self["scale"] * self["steps"]

    def check(self):
        votes, cuts = self["votes"], self["cuts"][: self.kept]
        check_steps(self.arrays)
        if (
            not are_counts(self["progress"], votes, self["born"])
            or not max(self.kept, 1) <= self["progress"][3]
            or votes.sum(dtype=np.float64) > MOST_COUNTED
        ):
            raise ValueError(
                f"the votes must be from 0 to {MOST_COUNTED}, of at most "
                f"{self['progress'][3]} hypotheses; got {self.kept}"
            )
        if (np.diff(cuts, axis=1) < 0).any():
            raise ValueError("the thresholds of each hypothesis must ascend")

    @property
    def kept(self):
        """Number of past hypotheses."""
        return int(self["progress"][0])

    def saved(self):
        """Return the arrays that determine the model, without free room."""
        kept = self.kept
        return {
            name: array[:kept] if self.forms[name].axes[0] == "room" else array
            for name, array in OnlineModel.saved(self).items()
        }

    def make_room(self):
        """Double the capacity for past hypotheses if it is exhausted, up to their limit."""
        if self.m.progress[0] < self.m.capacity or self.m.capacity == self.m.progress[3]:
            return False
        self.widen("room", min(max(2 * self.m.capacity, FIRST_ROOM), self.m.progress[3]))
        return True

    def lineup(self):
        """Return the voting hypotheses, oldest first; the current one as if a mistake had ended it.

        Returns indices of past hypotheses, whether the current one follows them, and all votes.
        """
        cdef VotedState *m = &self.m
        cdef int64_t fewest = -1, displaced = _slot(m.votes, m.born, m.progress, &fewest)
        past = np.argsort(self["born"][: self.kept])
        past = past[past != displaced]  # displaced by the current one
        present = displaced >= 0
        votes = np.append(self["votes"][past], self["progress"][1 : 1 + present])
        return past, present, votes

    def compute(self):
        """Return the hypotheses, their thresholds and their votes, oldest first."""
        past, present, votes = self.lineup()
        names = ("weights", "offset")
        weights, offset = self.folded({name: self[name] for name in names}).values()

        def lined_up(kept, last):
            out = np.empty((votes.size, last.size))
            # In any other mode, `take` fills a copy of `out` first.
            kept.take(past, axis=0, out=out[: past.size], mode="clip")
            if present:
                out[votes.size - 1] = last
            return out

        return (
            lined_up(self["hypotheses"][:, :, 0], weights),
            lined_up(self["cuts"], self["thresholds"] + offset),
            votes,
        )
