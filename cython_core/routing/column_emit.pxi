"""Many rows in one call, given as columns: the row emits in a loop, without a call for each of them.

    emit_many(words, counts) ─┬─ an output ──────► one list, refilled for each row ──► RowSink
                              ├─ one grouping ─┬─ to process_many ──► a ColumnSlice for each task ──► its batch
                              │                └─ else ─► a Tuple of the pool for each row ──► its batch
                              └─ else ───────────► the list ──► StreamRouter.route

Invariant: the same rows, order of those for a task, tasks, trees and counters as
``for row in zip(*columns): emit(row)``, after an error, too. tests/core/routing/test_column_emit.py runs both.

Threading law: producer's thread only.
"""

from cpython.list cimport PyList_AsTuple
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from cython_core.acking.acker cimport LOST, Roots, anchor_t, attempt_of_row, ps_acker_add, ps_acker_edge
from cython_core.queues.queues cimport BatchInserter, PendingEmits, insert_rows
from cython_core.routing.route cimport (
    GROUPING_ALL, GROUPING_CUSTOM, GROUPING_DIRECT, GROUPING_FIELDS, GROUPING_GLOBAL, GROUPING_PARTIAL_KEY, Route,
)
from cython_core.tuples.tuple cimport Tuple, TupleSource, columns_slice, new_edge, new_tuple, values_of

from cython_core.arrow.row_error import coded, shown


# Rows of an emit that are sent as columns. Fewer: a slice costs more than so many tuples. More: short emits cost what
# they cost before.
cdef Py_ssize_t FEWEST_ROWS = 4


cdef tuple columns_of(tuple given):
    """The columns as tuples. Raises TypeError.

    Order: tuples, as a list may be changed by what runs between two rows, such as a grouping of the user's.
    """
    if PyTuple_GET_SIZE(given) == 1:
        return (column_of(given[0]),)
    return tuple([column_of(values) for values in given])


cdef tuple column_of(object values):
    if type(values) is list:
        return PyList_AsTuple(values)
    if isinstance(values, (str, bytes)) or not (hasattr(values, "__iter__") or hasattr(values, "__getitem__")):
        raise coded(
            TypeError,
            "PYSTORM_EMIT_NOT_A_LIST",
            f"emit_many takes a list of values for each field, received {type(values)!r} instead: "
            f"emit_many([{shown(values, 40)}]) emits one row, emit_many(words, counts) as many as the lists are long. "
            f"Given: {shown(values)}"
        )
    return tuple(values)


cdef int check_fields(StreamRouter router, tuple columns) except -1:
    """Raises ValueError unless there is a column for each field."""
    if len(columns) != router.arity:
        raise coded(
            ValueError,
            "PYSTORM_WRONG_NUMBER_OF_FIELDS",
            f"emit_many takes one column for each field: stream {router.source.stream!r} of "
            f"{router.source.component!r} declares {list(router.source.fields)}; Given: {len(columns)} columns"
        )
    return 0


cdef Py_ssize_t length_of(tuple columns, tuple ids) except -1:
    """How many rows the columns have, and the ids if there are any. Raises ValueError if they differ."""
    cdef Py_ssize_t rows = 0
    cdef Py_ssize_t i
    if ids is not None:
        rows = PyTuple_GET_SIZE(ids)
    elif columns:
        rows = PyTuple_GET_SIZE(<object>PyTuple_GET_ITEM(columns, 0))
    for i in range(PyTuple_GET_SIZE(columns)):
        if PyTuple_GET_SIZE(<object>PyTuple_GET_ITEM(columns, i)) != rows:
            raise coded(
                ValueError,
                "PYSTORM_WRONG_NUMBER_OF_FIELDS",
                f"emit_many takes columns of the same length, a value of each field for every row"
                f"{'' if ids is None else ', and as many tup_ids'}; "
                f"Given: columns of {[len(each) for each in columns]} values"
                f"{'' if ids is None else f', {rows} tup_ids'}"
            )
    return rows


cdef int emit_one_by_one(object component, tuple columns, tuple ids, dict named) except -1:
    """Through the component's own emit: it has another one than the engine's, or is in no topology."""
    cdef Py_ssize_t i
    for i in range(length_of(columns, ids)):
        if ids is not None:
            named["tup_id"] = ids[i]
        component.emit(tuple([column[i] for column in columns]), **named)
    return 0


cdef int refill(list row, tuple columns, Py_ssize_t number) except -1:
    """The list holds that row from now on."""
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(columns)):
        row[i] = <object>PyTuple_GET_ITEM(<object>PyTuple_GET_ITEM(columns, i), number)
    return 0


cdef object values_at(tuple columns, Py_ssize_t number, PyObject **room, object values_class):
    """That row as its receiver is to get it. ``room``: for as many addresses as there are columns."""
    cdef Py_ssize_t i
    cdef Py_ssize_t n = PyTuple_GET_SIZE(columns)
    if values_class is None:
        return tuple([column[number] for column in columns])
    for i in range(n):
        room[i] = PyTuple_GET_ITEM(<object>PyTuple_GET_ITEM(columns, i), number)
    return values_of(room, n, values_class)


cdef int send_columns(StreamRouter router, tuple columns, Py_ssize_t rows, const anchor_t *anchor,
                      unsigned long long *emits) except -1:
    """Takes that many emits; counts in ``emits`` those that succeeded. ``anchor``: as of ``StreamRouter.route``."""
    cdef list row
    cdef Py_ssize_t i
    if router.straight or chooses_one(router):
        if rows >= FEWEST_ROWS and take_columns(<Route>router.routes[0]):
            return send_slices(router, <Route>router.routes[0], columns, rows, anchor, emits)
        return send_to_one(router, columns, rows, anchor, emits)
    row = [None] * len(columns)
    if router.row_sink is not None and router.capture is None and not router.direct and not router.routes:
        return put_out_all(router, columns, row, rows, anchor, emits)
    for i in range(rows):
        refill(row, columns, i)
        router.route(row, anchor, None)
        emits[0] += 1
    return 0


cdef bint chooses_one(StreamRouter router) except -1:
    """Whether an emit leads to one tuple, in a task that the engine chooses."""
    if router.row_sink is not None or router.capture is not None or router.direct or router.copies:
        return False
    if len(router.routes) != 1:
        return False
    return (<Route>router.routes[0]).kind not in (GROUPING_ALL, GROUPING_CUSTOM, GROUPING_DIRECT)


cdef bint take_columns(Route route) noexcept:
    """Whether all its tasks have process_many."""
    cdef Py_ssize_t i
    for i in range(route.fan):
        queue = (<BatchInserter>route.targets[i]).queue
        if queue is None or not queue.takes_columns:
            return False
    return True


cdef int send_slices(StreamRouter router, Route route, tuple columns, Py_ssize_t rows, const anchor_t *anchor,
                     unsigned long long *emits) except -1:
    """One tuple for each task that gets some of the rows."""
    cdef list places
    cdef Py_ssize_t i
    if route.fan == 1 or route.kind == GROUPING_GLOBAL:
        return send_slice(router, <BatchInserter>route.targets[0], columns, rows, anchor, emits)
    places = [[] for _target in range(route.fan)]
    try:
        for i in range(rows):
            (<list>places[place_of(route, columns, i)]).append(i)
    except BaseException:
        send_places(router, route, columns, places, anchor, emits)
        router.emitted += 1  # as one by one
        raise
    return send_places(router, route, columns, places, anchor, emits)


cdef Py_ssize_t place_of(Route route, tuple columns, Py_ssize_t number) except -1:
    """Which of the route's targets that row goes to."""
    if route.kind == GROUPING_FIELDS and not route.java:
        return route.place_of_key(columns, number)
    if route.kind == GROUPING_FIELDS or route.kind == GROUPING_PARTIAL_KEY:
        return route.place(tuple([column[number] for column in columns]))
    return route.place(None)


cdef int send_places(StreamRouter router, Route route, tuple columns, list places, const anchor_t *anchor,
                     unsigned long long *emits) except -1:
    """``places``: for each target its rows."""
    cdef Py_ssize_t i
    for i in range(route.fan):
        rows = <list>places[i]
        if rows:
            chosen = tuple([tuple([column[row] for row in rows]) for column in columns])
            send_slice(router, <BatchInserter>route.targets[i], chosen, len(rows), anchor, emits)
    return 0


cdef int send_slice(StreamRouter router, BatchInserter target, tuple columns, Py_ssize_t rows, const anchor_t *anchor,
                    unsigned long long *emits) except -1:
    cdef Tuple tup = new_edge(router.source, columns_slice(router.source.fields, columns, rows), anchor)
    router.emitted += rows
    router.transferred += rows
    emits[0] += rows
    if router.pending.count == 0 and insert_rows(target, tup):
        return 0
    return router.pending.push(target, tup)


cdef int send_to_one(StreamRouter router, tuple columns, Py_ssize_t rows, const anchor_t *anchor,
                     unsigned long long *emits) except -1:
    cdef TupleSource source = router.source
    cdef object values_class = source.values_class
    cdef PendingEmits pending = router.pending
    cdef BatchInserter target = router.only
    cdef Route route = None if target is not None else <Route>router.routes[0]
    cdef Roots roots = None if anchor.roots is NULL else <Roots>anchor.roots
    cdef uint64_t edges = 0
    cdef uint32_t added = 0
    cdef PyObject **room = <PyObject **>PyMem_Malloc(max(1, len(columns)) * sizeof(PyObject *))
    cdef Tuple tup
    cdef object payload
    cdef Py_ssize_t i
    if room is NULL:
        raise MemoryError("no memory for the values of a row")
    try:
        for i in range(rows):
            router.emitted += 1  # hot
            payload = values_at(columns, i, room, values_class)
            if route is not None:  # hot
                target = route.choose(payload)
            if roots is None:  # hot
                tup = new_edge(source, payload, anchor)
            else:
                tup = new_tuple(source, payload, anchor.offset)
                tup.roots = roots
                tup.edge = ps_acker_edge(&source.acker.acker)
                edges ^= tup.edge
                added += 1
            router.transferred += 1  # hot
            transfer(pending, target, tup)
            emits[0] += 1  # hot
    finally:
        PyMem_Free(room)
        if added > 0:
            add_edges(roots, edges, added)
    return 0


cdef int add_edges(Roots roots, uint64_t edges, uint32_t count) noexcept:
    """To each root at once what adding edge by edge would, whose sum (XOR) this is: an emit in a batch of many trees
    would cost as much as it has trees. Order: the anchor is open, so no root can be complete before."""
    cdef Py_ssize_t i
    for i in range(roots.count):
        if roots.roots[i].attempt == roots.attempts[i]:
            ps_acker_add(roots.roots[i], roots.attempts[i], edges)
            roots.roots[i].waiting += count - 1
    return 0


cdef int put_out_all(StreamRouter router, tuple columns, list row, Py_ssize_t rows, const anchor_t *anchor,
                     unsigned long long *emits) except -1:
    cdef uint64_t attempt
    cdef Py_ssize_t i
    for i in range(rows):
        router.emitted += 1  # hot
        refill(row, columns, i)
        attempt = attempt_of_row(anchor) if i == 0 or anchor.roots is NULL else attempt_of_next(<Roots>anchor.roots)
        if attempt != LOST:  # hot
            router.row_sink.append(row, offset_of_row(router.row_sink, anchor), attempt)
        emits[0] += 1  # hot
    return 0


cdef inline uint64_t attempt_of_next(Roots roots) noexcept:
    # The first row has linked the roots: if one fails, all have failed.
    return roots.attempts[0] if roots.roots[0].attempt == roots.attempts[0] else LOST
