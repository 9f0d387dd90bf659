"""An ``emit`` of the component's own class, which takes the plain emits at once; see own_emit.h.

    class MyBolt(Bolt)     a collector is made: MyBolt.emit = the descriptor     the last one is detached: removed
    class MyBolt(Mine)     Mine has an emit in Python: stays as it is

A class that was given one stands between its subclasses and the emits of their other bases, so it gets none if a
subclass has another emit behind it, and loses it if such a subclass is made later.

Threading law: with the interpreter's lock held.
"""

import weakref


# Order: here alone. What the header keeps is static: another module that included it would have its own.
cdef extern from "cython_core/routing/own_emit.h":
    int ps_own_emit_set(bint is_bolt, plain_emit_t plain, object base) except -1
    int ps_own_emit(object cls, bint is_bolt) except -1
    bint ps_is_own_emit(object bound, bint is_bolt)
    int ps_own_emit_back(object cls, bint is_bolt) except -1


# Classes that have an `emit` of their own from here → collectors that use it.
own_emits = weakref.WeakKeyDictionary()

cdef object spout_base = None
cdef object bolt_base = None


cdef int register_base(object base, bint is_bolt, plain_emit_t plain) except -1:
    """The base whose ``emit`` is the general one, and what takes its plain emits."""
    global spout_base, bolt_base
    ps_own_emit_set(is_bolt, plain, base)
    if is_bolt:
        bolt_base = base
    else:
        spout_base = base
    return 0


cdef bint is_own_emit(object bound, bint is_bolt):
    """Whether a component's ``emit`` is the engine's."""
    return ps_is_own_emit(bound, is_bolt)


cdef object give_own_emit(object cls, bint is_bolt):
    """The class, where it has an emit of its own now; else None. Not where that would come before another base's emit
    in a subclass."""
    if cls not in own_emits and (hides_in_subclasses(cls) or not ps_own_emit(cls, is_bolt)):
        return None
    own_emits[cls] = own_emits.get(cls, 0) + 1
    return cls


cdef bint hides_in_subclasses(object cls) except -1:
    for subclass in type.__subclasses__(cls):
        if hides_another(cls, subclass) or hides_in_subclasses(subclass):
            return True
    return False


cdef bint hides_another(object cls, object subclass) except -1:
    """Whether an emit of ``cls`` comes before the one that ``subclass`` would have without it, the engine's apart."""
    seen = False
    for each in subclass.__mro__:
        if each is cls:
            seen = True
        elif "emit" in vars(each) and each not in own_emits:
            return seen and each is not spout_base and each is not bolt_base
    return False


cdef int take_own_emit(object cls, bint is_bolt) except -1:
    used = own_emits.get(cls, 0) - 1
    if used > 0:
        own_emits[cls] = used
    elif used == 0:
        del own_emits[cls]
        ps_own_emit_back(cls, is_bolt)
    return 0


def has_subclass(cls):
    """Called for every new component class: no emit that a base of it was given comes before another one."""
    for base in cls.__mro__[1:]:
        if base in own_emits and hides_another(base, cls):
            del own_emits[base]
            ps_own_emit_back(base, bolt_base is not None and issubclass(base, bolt_base))
