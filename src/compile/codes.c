// Finds the cache of a code object and an offset, and drops code objects that nobody else holds.
#include "src/py/raised.h"

#include "src/compile/compiler.h"

compiler *all_compilers;

static cache *first_cache(const compiler *c, const void *code) {
    uint64_t *found = map_get(&c->caches, map_key(code));
    return found ? (cache *)(uintptr_t)*found : NULL;
}

static cache *new_cache(compiler *c, uint32_t unit) {
    cache *k = cache_new();
    if (!k)
        return NULL;
    k->unit = unit;
    if (vec_reserve(&c->codes, 1) != ST_OK || vec_reserve(&c->all, 1) != ST_OK) {
        cache_free(k);
        return NULL;
    }
    return k;
}

static void keep_cache(compiler *c, PyCodeObject *co, cache *k) {
    c->codes.items[c->codes.count++] = Py_NewRef((PyObject *)co);
    c->all.items[c->all.count++] = k;
}

// References to one code object, or to each.
typedef struct tally {
    PyObject *code;
    Py_ssize_t count;
    map *each; // code object → count; or NULL
} tally;

static void count_code(PyObject *code, void *data) {
    tally *t = data;
    uint64_t *known = t->each ? map_get(t->each, map_key(code)) : NULL;
    if (known)
        ++*known;
    t->count += t->code == code;
}

// What one compiler has of a code object: one for each cache, and those that its entries keep for
// breaks.
static Py_ssize_t own_refs(const compiler *c, PyObject *code) {
    tally t = {.code = code};
    for (const cache *k = first_cache(c, code); k; k = k->next) {
        t.count++;
        cache_each_code(k, count_code, &t);
    }
    return t.count;
}

static Py_ssize_t refs_of_others(const compiler *except, PyObject *code) {
    Py_ssize_t count = 0;
    for (const compiler *c = all_compilers; c; c = c->next)
        count += c == except ? 0 : own_refs(c, code);
    return count;
}

// Freeing runs code: the caches are taken out first.
static void forget_code(compiler *c, PyObject *code) {
    uint32_t kept = 0;
    cache *k = first_cache(c, code), *next;
    Py_ssize_t held = 0;
    *map_get(&c->caches, map_key(code)) = 0; // its address may soon be another's
    for (uint32_t i = 0; i < c->all.count; i++) {
        if (c->codes.items[i] == code) {
            held++;
            continue;
        }
        c->codes.items[kept] = c->codes.items[i];
        c->all.items[kept++] = c->all.items[i];
    }
    c->codes.count = c->all.count = kept;
    for (; k; k = next) {
        next = k->next;
        cache_free(k);
    }
    for (; held > 0; held--)
        Py_DECREF(code);
}

static compiler *who_has(PyObject *code) {
    compiler *c = all_compilers;
    while (c && !first_cache(c, code))
        c = c->next;
    return c;
}

// As long as others have it, somebody may run it.
void compiler_let_go(PyObject *code) {
    py_raised aside = py_put_aside();
    if (refs_of_others(NULL, code) == Py_REFCNT(code)) {
        Py_INCREF(code);
        for (compiler *c; (c = who_has(code));) {
            Py_INCREF(c);
            forget_code(c, code);
            Py_DECREF(c);
        }
        Py_DECREF(code);
    }
    py_put_on(aside);
}

// Those of which all references are compilers'; new list, or NULL.
static PyObject *forgotten_codes(const compiler *c) {
    map each = {0};
    tally t = {.each = &each};
    bool fine = true;
    for (uint32_t i = 0; fine && i < c->all.count; i++) {
        uint64_t *known = map_get(&each, map_key(c->codes.items[i]));
        if (known)
            ++*known;
        else
            fine = map_put(&each, map_key(c->codes.items[i]), 1) == ST_OK;
    }
    for (uint32_t i = 0; fine && i < c->all.count; i++)
        cache_each_code(c->all.items[i], count_code, &t);
    PyObject *list = fine ? PyList_New(0) : NULL;
    for (uint32_t i = 0; list && i < c->all.count; i++) {
        PyObject *code = c->codes.items[i];
        uint64_t *count = map_get(&each, map_key(code));
        if (*count == 0 || (uint64_t)Py_REFCNT(code) != *count + (uint64_t)refs_of_others(c, code))
            continue;
        *count = 0; // once, and the list has one more from here on
        if (PyList_Append(list, code) < 0)
            Py_CLEAR(list);
    }
    map_clear(&each);
    return list;
}

// Functions may die after what was compiled of them, and entries of one may keep the code of
// another: all are looked at now and then.
static void sweep(compiler *c) {
    enum { FEW = 64 };
    if (c->all.count < (c->sweep_at ? c->sweep_at : FEW))
        return;
    py_raised aside = py_put_aside();
    PyObject *codes = forgotten_codes(c);
    for (Py_ssize_t i = 0; codes && i < PyList_GET_SIZE(codes); i++)
        if (first_cache(c, PyList_GET_ITEM(codes, i)))
            forget_code(c, PyList_GET_ITEM(codes, i));
    PyErr_Clear();
    Py_XDECREF(codes);
    c->sweep_at = 2 * c->all.count > FEW ? 2 * c->all.count : FEW;
    py_put_on(aside);
}

cache *compiler_cache(compiler *c, PyCodeObject *co, uint32_t unit) {
    for (cache *k = first_cache(c, co); k; k = k->next)
        if (k->unit == unit)
            return k;
    sweep(c);
    cache *first = first_cache(c, co); // what was let go may have run code
    cache *k = new_cache(c, unit);
    if (!k)
        return NULL;
    if (!first && map_put(&c->caches, map_key(co), map_key(k)) != ST_OK) {
        cache_free(k);
        return NULL;
    }
    if (first) {
        k->next = first->next;
        first->next = k;
    }
    keep_cache(c, co, k);
    return k;
}
