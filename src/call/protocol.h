// A protocol is a set of special methods that native code may call on a value. Preparing a value
// for a protocol opens the value and looks each method up through the door. So the trace knows a
// Python method when its frame comes through the hook, and a guard checks that a missing method
// stays missing.
#pragma once

#include "src/world/world.h"

typedef enum protocol {
    P_NONE = 0,
    P_HASH = 1 << 0,   // __hash__, __eq__
    P_EQ = 1 << 1,     // __eq__, __ne__
    P_ORDER = 1 << 2,  // __lt__, __le__, __gt__, __ge__, and P_EQ
    P_ITER = 1 << 3,   // __iter__, __next__, __getitem__, __len__, __length_hint__
    P_TRUTH = 1 << 4,  // __bool__, __len__
    P_LEN = 1 << 5,    // __len__
    P_INDEX = 1 << 6,  // __index__, __int__, __float__, __complex__, __trunc__ …
    P_NUMBER = 1 << 7, // binary and unary operators
    P_ITEM = 1 << 8,   // __getitem__, __setitem__, __delitem__, __missing__
    P_CONTAINS = 1 << 9,
    P_STR = 1 << 10,    // __str__
    P_CALL = 1 << 11,   // native code will call the value: it becomes a trampoline
    P_COPY = 1 << 12,   // __copy__, __deepcopy__, __reduce_ex__
    P_ATTR = 1 << 13,   // native code will read attributes: only builtin immutables pass
    P_REPR = 1 << 14,   // __repr__
    P_FORMAT = 1 << 15, // __format__
    P_TEXT = P_STR | P_REPR | P_FORMAT,
    P_ALL = P_HASH | P_EQ | P_ORDER | P_ITER | P_TRUTH | P_LEN | P_INDEX | P_NUMBER | P_ITEM |
        P_CONTAINS | P_TEXT | P_COPY | P_ATTR, // for types whose slots are all harmless
    P_UNORDERED = 1 << 16, // with P_ITER: the result does not depend on the order
    P_DEEP = 1 << 30,      // the same for elements of elements, at every depth
} protocol;

// Prepares one value for all these protocols. *o (a strong reference) is replaced by the opened
// value. ST_BREAK if native code might do something with the value that the trace cannot see.
status protocol_open(world *w, PyObject **o, unsigned protocols);
// Whether protocol_open leaves a value as it is because it is a number that stays open: 1, 0, -1.
int protocol_keeps_open(world *w, PyObject *o, unsigned protocols);
// The same; also prepares the elements of an inside container or twin, in place (a tuple is
// replaced).
status protocol_open_elements(world *w, PyObject **o, unsigned protocols);
// Prepares a value that traced code gives to the native code that called it: a callback's result, a
// yielded value. Opens it; ST_BREAK if native code could use it without the trace seeing that
// (outside iterators of C types). *o is a strong reference.
status protocol_handed_over(world *w, PyObject **o);
