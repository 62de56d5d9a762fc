// Gives a graph with open numbers to a backend. The backend decides more about these numbers than
// the trace did. Its decisions become guards before the guards are sealed.
#include "src/py/evalhook.h"

#include "src/graph/given.h"

#include "src/world/number.h"

#include "src/compile/room.h"

static PyObject *place_text(void *place) {
    return source_text(place);
}

// (callable, conditions, pinned); new reference.
static PyObject *ask_backend(compiler *c, product *made, PyObject *const *regs, given *numbers) {
    graph *g = plan_graph_of(made->plan);
    PyObject *said = given_numbers(numbers, g, place_text);
    PyObject *examples = said ? plan_examples(made->plan, regs) : NULL;
    PyObject *answer = NULL;
    if (examples) {
        hook_mode before = hook_swap(HOOK_OFF);
        answer = PyObject_CallFunctionObjArgs(c->backend, (PyObject *)g, examples, said, NULL);
        hook_swap(before);
    }
    Py_XDECREF(said);
    Py_XDECREF(examples);
    return answer;
}

// Seals the guards again, with those that the backend added. The trace is done then.
static int seal(product *made) {
    if (numbers_guard(made->trace) != ST_OK || numbers_end(made->trace, made, "backend") < 0)
        return -1;
    guard_program *sealed = guard_seal(made->trace->guards);
    if (!sealed)
        return -1;
    guard_trial_free(made->guards);
    made->guards = sealed;
    made->open_end = false;
    world_free(made->trace);
    made->trace = NULL;
    return 0;
}

PyObject *hand_over_numbers(compiler *c, product *made, PyObject *const *regs) {
    given numbers = {.sizes = made->trace->numbers.sizes};
    PyObject *answer = ask_backend(c, made, regs, &numbers);
    PyObject *callable = NULL, *conditions, *pinned;
    if (answer && PyArg_ParseTuple(answer, "OO!O!", &callable, &PyList_Type, &conditions,
                                   &PyList_Type, &pinned)) {
        callable = backend_callable(Py_NewRef(callable));
        if (callable && (given_decide(&numbers, conditions, pinned) < 0 || seal(made) < 0))
            Py_CLEAR(callable);
    }
    given_clear(&numbers);
    Py_XDECREF(answer);
    return callable;
}
