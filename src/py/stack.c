// The C stack of a thread: where it ends, and how to go on on a fresh piece when it is used up.
#define _GNU_SOURCE
#include "src/py/frame.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

_Thread_local char *py_stack_floor;

// A piece is reserved, not used: pages come as the depth needs them.
#define PIECE_SIZE ((size_t)64 << 20)

// Half of a stack is kept for native code: its own counters allow it some megabytes (10,000 levels of
// repr on 3.13), which CPython spends on the same stack.
static char *floor_of(char *low, size_t size) {
    return low + size / 2;
}

void py_stack_find(void) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    // The main thread's stack may be unlimited; no more of it is counted on than usual.
    if (size > PIECE_SIZE) {
        low = (char *)low + size - PIECE_SIZE;
        size = PIECE_SIZE;
    }
    py_stack_floor = floor_of(low, size);
}

typedef struct crossing {
    _PyFrameEvalFunction eval;
    PyThreadState *ts;
    py_frame *frame;
    int throwing;
    PyObject *result;
    ucontext_t here, there;
} crossing;

// makecontext passes only ints, so the pointer crosses in two halves.
static void cross(unsigned high, unsigned low) {
    crossing *c = (crossing *)(((uintptr_t)high << 32) | low);
    c->result = c->eval(c->ts, c->frame, c->throwing);
}

static char *map_piece(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    void *piece = mmap(NULL, PIECE_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
    return piece == MAP_FAILED ? NULL : piece;
}

static void run_on(char *piece, crossing *c) {
    char *floor_before = py_stack_floor;
    getcontext(&c->there);
    c->there.uc_stack.ss_sp = piece;
    c->there.uc_stack.ss_size = PIECE_SIZE;
    c->there.uc_link = &c->here;
    uintptr_t self = (uintptr_t)c;
    makecontext(&c->there, (void (*)(void))cross, 2, (unsigned)(self >> 32), (unsigned)self);
    py_stack_floor = floor_of(piece, PIECE_SIZE);
    swapcontext(&c->here, &c->there);
    py_stack_floor = floor_before;
}

PyObject *py_stack_extend(_PyFrameEvalFunction eval, PyThreadState *ts, py_frame *f, int throwing) {
    char *piece = map_piece();
    crossing c = {.eval = eval, .ts = ts, .frame = f, .throwing = throwing};
    if (piece == NULL)
        return eval(ts, f, throwing); // the reserved half is still there
    run_on(piece, &c);
    munmap(piece, PIECE_SIZE);
    return c.result;
}
