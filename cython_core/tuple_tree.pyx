"""Tuple trees: which spout tuples are wholly processed.

    spout.emit(values, tup_id) ──► TupleTree ◄── one edge per tuple anchored to it
                                       │ all edges acked, or one failed
                                       ▼
                        settlements of the spout's task ──► spout.ack(tup_id) or fail(tup_id)

A tuple refers to its tree, so an ack is a decrement, without a look-up. ``trees`` of a tuple is None where nobody asked
for acks, its TupleTree, or a tuple of several where it was anchored to tuples of different trees. The rules are Storm's
(its guide to guaranteed message processing): the first failed edge fails the tree at once, what comes later changes
nothing, and a tree without edges is acked as soon as the emit returns.

Threading law: all executors of the trees run in one thread.
"""

cimport cython
from cpython.object cimport PyObject


@cython.final
@cython.freelist(1024)
cdef class TupleTree:
    """``TupleTree(key, settlements)``: begins with one edge outstanding, the emit's own."""

    def __cinit__(self, key, list settlements not None):
        self.key = key
        self.settlements = settlements
        self.outstanding = 1


cdef int settle(TupleTree tree, bint failed) except -1:
    if not tree.settled:
        tree.settled = 1
        tree.failed = failed
        tree.settlements.append(tree)
    return 0


cdef int adopt_many(object trees) except -1:
    for tree in <tuple?>trees:
        (<TupleTree?>tree).outstanding += 1
    return 0


cdef int ack_edge(object trees) except -1:
    """One edge of each of the trees is done."""
    cdef TupleTree tree
    if type(trees) is TupleTree:
        tree = <TupleTree>trees
        tree.outstanding -= 1
        if tree.outstanding == 0:
            settle(tree, 0)
    elif trees is not None:
        for each in <tuple>trees:
            ack_edge(each)
    return 0


cdef int fail_edge(object trees) except -1:
    """Fails each of the trees at once."""
    if type(trees) is TupleTree:
        settle(<TupleTree>trees, 1)
    elif trees is not None:
        for each in <tuple>trees:
            settle(<TupleTree>each, 1)
    return 0


cdef int add_trees(dict found, object trees) except -1:
    """Adds the trees of an anchor, each once, in order."""
    if type(trees) is TupleTree:
        found[<size_t><PyObject *>trees] = trees
    elif trees is not None:
        for tree in <tuple>trees:
            found[<size_t><PyObject *>tree] = tree
    return 0


cdef object united(dict found):
    """What a tuple that is an edge of all these trees refers to."""
    if not found:
        return None
    trees = tuple(found.values())
    return trees[0] if len(trees) == 1 else trees
