// Which inputs share memory: guards compare it once an input is written to.
#include "src/torch/overrides.h"

void alias_group_drop(alias_group *g) {
    if (!g || --g->references > 0)
        return;
    vec_free(&g->each);
    PyMem_Free(g);
}

static bool is_overlap(const extent *a, const extent *b) {
    return a->begin < b->end && b->begin < a->end;
}

status alias_group_add(alias_group *g, extent e) {
    member added = {.now = e, .first = (int)g->each.count};
    for (int i = 0; i < (int)g->each.count; i++) {
        member *other = &g->each.items[i];
        if (other->now.storage != e.storage) {
            g->overlaps |= is_overlap(&other->now, &e);
        } else if (!added.shared) {
            added.first = i;
            added.shared = other->shared = true;
        }
    }
    return vec_push(&g->each, added);
}

// Whether inputs `i` and `j` share memory as when they were traced; `j` is the first of its
// storage.
static bool share_as_before(const alias_group *g, int i, int j) {
    const extent *a = &g->each.items[i].now, *b = &g->each.items[j].now;
    if (g->each.items[i].first == j)
        return a->storage == b->storage;
    return a->storage != b->storage && (g->overlaps || !is_overlap(a, b));
}

static bool alias_group_compare(const alias_group *g, int i) {
    for (int j = 0; j < i; j++) {
        if (g->each.items[j].first == j && !share_as_before(g, i, j))
            return false;
    }
    return true;
}

// Whether input `i` shares memory with earlier inputs as when it was traced. If no input has moved
// since a pass that compared all, none is compared again: there may be many.
bool alias_group_check(alias_group *g, int i, PyObject *tensor) {
    extent e = read_extent(tensor), *known = &g->each.items[i].now;
    if (i == 0) {
        g->moved = !g->passed;
        g->passed = false;
    }
    g->moved |= known->storage != e.storage || known->begin != e.begin || known->end != e.end;
    *known = e;
    if (g->moved && !alias_group_compare(g, i))
        return false;
    g->passed = i == (int)g->each.count - 1;
    return true;
}

alias_group *alias_group_of(torch_trace *t) {
    if (!t->group) {
        t->group = PyMem_Calloc(1, sizeof(alias_group));
        if (!t->group)
            return (alias_group *)PyErr_NoMemory();
        t->group->references = 1;
    }
    return t->group;
}

void inputs_guard_sharing(world *w) {
    torch_trace *t = w->torch;
    if (t->group)
        t->group->matters = true;
}

bool inputs_overlap(const torch_trace *t, const graph *g) {
    return t->group && t->group->matters &&
           (t->group->overlaps || composites_written(t) || memory_spread_is_written(t) ||
            memory_is_shared_oddly(t, g));
}
