// The C stack of a thread: where it ends, and how to continue on a fresh piece when it is full.
#define _GNU_SOURCE
#include "src/py/frame.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

_Thread_local char *py_stack_floor;

// A piece is reserved, not used: pages come as the depth needs them.
#define PIECE_SIZE ((size_t)64 << 20)

// Half of a stack is kept for native code: its own counters allow it some megabytes (10,000 levels
// of repr on 3.13), which CPython spends on the same stack.
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

#define GUARD_SIZE ((size_t)64 << 10)

static char *map_piece(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    char *piece = mmap(NULL, PIECE_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (piece == MAP_FAILED)
        return NULL;
    mprotect(piece, GUARD_SIZE, PROT_NONE);
    return piece;
}

// One piece is kept per thread, for recursion that swings around the edge; it goes with the thread.
static pthread_key_t spare_key;
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;

static void drop_piece(void *piece) {
    munmap(piece, PIECE_SIZE);
}

static void make_spare_key(void) {
    pthread_key_create(&spare_key, drop_piece);
}

static char *get_piece(void) {
    pthread_once(&spare_once, make_spare_key);
    char *piece = pthread_getspecific(spare_key);
    if (!piece)
        return map_piece();
    pthread_setspecific(spare_key, NULL);
    return piece;
}

static void put_piece(char *piece) {
    if (pthread_getspecific(spare_key) || pthread_setspecific(spare_key, piece) != 0)
        drop_piece(piece);
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

// The frame is ended as one that could not be made.
static PyObject *out_of_stack(PyThreadState *ts, py_frame *f) {
    py_entry entry;
    PyErr_Clear();
    if (py_enter(ts, f, &entry, false) == 0)
        PyErr_NoMemory();
    py_leave_ended(ts, f, &entry, py_frame_stack_pointer(f));
    return NULL;
}

PyObject *py_stack_extend(_PyFrameEvalFunction eval, PyThreadState *ts, py_frame *f, int throwing) {
    char *piece = get_piece();
    if (!piece)
        return out_of_stack(ts, f);
    crossing c = {.eval = eval, .ts = ts, .frame = f, .throwing = throwing};
    run_on(piece, &c);
    put_piece(piece);
    return c.result;
}
