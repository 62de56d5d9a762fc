// All C code that depends on torch's version: the names of its C++ functions, and the layout of
// tensors, dtypes and devices in memory. Both are found when torch is attached. Before reads of
// memory are used, they are compared with torch's own answers for sample tensors.
#include "src/py/raw.h"
#include "src/py/words.h"

#include "src/torch/room.h"

#include <dlfcn.h>

// --- C++ functions ---

static void *open_library(PyObject *path) {
    const char *name = PyUnicode_AsUTF8(path);
    void *handle = name ? dlopen(name, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    if (!handle && name)
        PyErr_Format(PyExc_ImportError, "%s is not loaded", name);
    return handle;
}

#define LOCAL_KEYS "_ZN3c104impl26raw_local_dispatch_key_setE"

// Torch keeps it in a thread-local variable, so each thread has to look for it.
const uint64_t *local_keys(void) {
    static _Thread_local const uint64_t *address;
    if (!address && facts.local_keys)
        address = dlsym(facts.local_keys, LOCAL_KEYS);
    return address;
}

// Getters of the state that torch's own guard compares. None of them throws.
static struct {
    int8_t (*autocast)(int8_t device_type);
    bool (*caches)(void);
    uint8_t (*disabled)(void);
    int (*threads)(void);
    uint16_t (*dtype)(void);
    void *(*context)(void);
    bool (*deterministic)(const void *), (*warns)(const void *);
    uint8_t (*half)(const void *), (*bfloat16)(const void *);
    int (*precision)(const void *, int backend, int operation);
} flags;

static int find_symbols(void *c10, void *cpu) {
    const struct {
        void *library;
        const char *name;
        void *place;
        bool needed;
    } symbols[] = {
        {c10, "_ZN3c1019UndefinedTensorImpl10_singletonE", &facts.undefined, true},
        {c10, "_ZNK3c1010TensorImpl13requires_gradEv", &facts.requires_grad, true},
        {cpu, "_ZNK2at10TensorBase7is_leafEv", &facts.is_leaf, true},
        {c10, "_ZN3c108GradMode10is_enabledEv", &facts.grad_enabled, false},
        {c10, "_ZN3c1013InferenceMode10is_enabledEv", &facts.inference, true},
        {cpu, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", &facts.mode_count, true},
        {cpu, "_ZN2at4impl17NodeCreationHooks5emptyEv", &facts.no_node_hooks, false}, // since 2.14
        {cpu, "_ZN5torch3jit6tracer15getTracingStateEv", &facts.tracing_state, true},
        {cpu, "_ZN5torch8autograd14ForwardADLevel14try_get_by_idxEm", &facts.dual_level, false},
        {cpu, "_ZN2at23SavedTensorDefaultHooks13get_tls_stateEv", &facts.saved_hooks, false},
        {cpu, "_ZN2at4impl22PythonTorchFunctionTLS14peek_skip_nextEv", &facts.skip_next, false},
        {cpu, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", &flags.disabled, false},
        {cpu, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", &flags.autocast, false},
        {cpu, "_ZN2at8autocast25is_autocast_cache_enabledEv", &flags.caches, false},
        {cpu, "_ZN2at15get_num_threadsEv", &flags.threads, false},
        {cpu, "_ZN2at13globalContextEv", &flags.context, false},
        {cpu, "_ZNK2at7Context23deterministicAlgorithmsEv", &flags.deterministic, false},
        {cpu, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv", &flags.warns, false},
        {cpu, "_ZNK2at7Context24allowFP16ReductionCuBLASEv", &flags.half, false},
        {cpu, "_ZNK2at7Context24allowBF16ReductionCuBLASEv", &flags.bfloat16, false},
        {cpu, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE",
         &flags.precision, false},
        {c10, "_ZN3c1017get_default_dtypeEv", &flags.dtype, false},
        {cpu, "aoti_torch_get_dim", &facts.get_dim, true},
        {cpu, "aoti_torch_get_sizes", &facts.get_sizes, true},
        {cpu, "aoti_torch_get_strides", &facts.get_strides, true},
        {cpu, "aoti_torch_get_dtype", &facts.get_dtype, true},
        {cpu, "aoti_torch_get_device_type", &facts.get_device_type, true},
        {cpu, "aoti_torch_get_device_index", &facts.get_device_index, true},
        {cpu, "aoti_torch_get_storage_offset", &facts.get_offset, true},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(symbols); i++) {
        void *found = dlsym(symbols[i].library, symbols[i].name);
        if (!found && symbols[i].needed) {
            PyErr_Format(PyExc_ImportError, "it has no %s", symbols[i].name);
            return -1;
        }
        memcpy(symbols[i].place, &found, sizeof(void *));
    }
    facts.local_keys = c10;
    if (local_keys())
        return 0;
    PyErr_Format(PyExc_ImportError, "it has no %s", LOCAL_KEYS);
    return -1;
}

// --- autograd's state ---

// How libstdc++ has a std::shared_ptr, and the count of its owners.
typedef struct shared {
    void *object;
    char *owners;
} shared;
enum { OWNERS_AT = 8 };

// The level's own owner is torch's list of levels, so letting go here frees nothing.
static bool has_dual_level(void) {
    shared level = {0};
    facts.dual_level(&level, 0);
    if (level.owners)
        __atomic_fetch_sub((int *)(level.owners + OWNERS_AT), 1, __ATOMIC_ACQ_REL);
    return level.object != NULL;
}

// It begins with a std::stack: where the first item is, and where the last one ends.
enum { FIRST_AT = 2, END_AT = 6 };

static bool has_saved_hooks(void) {
    void *const *state = facts.saved_hooks();
    return state[FIRST_AT] != state[END_AT];
}

// A class that is returned in memory is written to the address in the first argument, on this
// machine alone.
bool quick_state(bool *dual, bool *saved) {
#if defined(__x86_64__) && defined(__linux__)
    if (!facts.dual_level || !facts.saved_hooks)
        return false;
    *dual = has_dual_level();
    *saved = has_saved_hooks();
    return true;
#else
    (void)dual, (void)saved;
    return false;
#endif
}

// --- the state that torch's guard compares ---

// The c10::DeviceType of each device that has autocast, in the order of torch's guard.
static const int8_t autocast_devices[] = {0, 1, 19, 8, 12, 18, 15, 9, 20, 13};
static_assert(sizeof(autocast_devices) == sizeof(((torch_flags *)0)->autocast), "one each");

enum { FOR_CUDA = 1, FOR_MATMUL = 3, IS_TF32 = 2 }; // Float32Backend, Float32Op, Float32Precision

static bool has_flags(void) {
    return facts.grad_enabled && flags.autocast && flags.caches && flags.disabled &&
           flags.threads && flags.dtype && flags.context && flags.deterministic && flags.warns &&
           flags.half && flags.bfloat16 && flags.precision;
}

static void read_dtypes(torch_flags *now) {
    for (size_t i = 0; i < sizeof(autocast_devices); i++)
        now->autocast[i] = flags.autocast(autocast_devices[i]);
}

// Whether autocast is on for some device: the thread does not exclude its key, as it usually does.
static bool autocast_is_on(void) {
    const uint64_t *keys = local_keys();
    return !keys || (keys[1] & facts.autocast_keys) != 0;
}

bool flags_read(torch_flags *now) {
    if (!has_flags())
        return false;
    const void *context = flags.context();
    memset(now, 0, sizeof(*now));
    now->threads = flags.threads();
    now->precision = flags.precision(context, FOR_CUDA, FOR_MATMUL);
    now->dtype = flags.dtype();
    if (autocast_is_on())
        read_dtypes(now);
    now->caches = flags.caches();
    now->disabled = flags.disabled();
    now->grad = facts.grad_enabled();
    now->deterministic = flags.deterministic(context);
    now->warns = flags.warns(context);
    now->half = flags.half(context);
    now->bfloat16 = flags.bfloat16(context);
    return true;
}

PyObject *flags_dict(void) {
    torch_flags now;
    if (!flags_read(&now))
        Py_RETURN_NONE;
    read_dtypes(&now);
    PyObject *dtypes = PyList_New(0);
    for (size_t i = 0; dtypes && i < sizeof(now.autocast); i++) {
        PyObject *dtype = PyLong_FromLong(now.autocast[i]);
        if (!dtype || PyList_Append(dtypes, dtype) < 0)
            Py_CLEAR(dtypes);
        Py_XDECREF(dtype);
    }
    if (!dtypes)
        return NULL;
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:N,s:i,s:i,s:i,s:i,s:N}", "autocast_dtype", dtypes, "autocast_cache",
        PyBool_FromLong(now.caches), "grad_mode", PyBool_FromLong(now.grad), "torch_function",
        PyBool_FromLong(now.disabled == 0), "deterministic_algorithms",
        PyBool_FromLong(now.deterministic), "deterministic_algorithms_warn_only",
        PyBool_FromLong(now.warns), "num_threads", now.threads, "default_dtype", (int)now.dtype,
        "allow_fp16_reduce", (int)now.half, "allow_bf16_reduce", (int)now.bfloat16, "allow_tf32",
        PyBool_FromLong(now.precision == IS_TF32));
}

// --- reading a tensor ---

// Where TensorImpl has things, as find_layout makes sure.
enum {
    KEYS_AT = 168,
    STORAGE_AT = 16,
    DATA_AT = 16, // of a StorageImpl
    BYTES_AT = 48,
    META_AT = 24, // what autograd has to do with the tensor, or NULL
    SIZES_AT = 56,
    INLINE_SIZES = 5,
    OFFSET_AT = 144,
    DTYPE_AT = 160,
    DEVICE_AT = 162,
    GRAD_FN_AT = 48, // of an AutogradMeta: the node that made the tensor, or NULL
};
static_assert(DEVICE_AT == DTYPE_AT + 2, "four bytes tell dtype and device");

static const char *impl_of(PyObject *tensor) {
    return *(const char **)((char *)tensor + facts.impl_at);
}

#define FIELD(type, impl, at) (*(const type *)((impl) + (at)))

static void read_raw(PyObject *tensor, seen *s) {
    const char *whole = impl_of(tensor), *impl = whole + facts.shift;
    s->dims = FIELD(int64_t, impl, SIZES_AT);
    if (s->dims <= INLINE_SIZES) {
        s->sizes = &FIELD(int64_t, impl, SIZES_AT + 8);
        s->strides = s->sizes + INLINE_SIZES;
    } else {
        s->sizes = FIELD(int64_t *, impl, SIZES_AT + 8);
        s->strides = s->sizes + s->dims;
    }
    s->dtype = FIELD(uint16_t, impl, DTYPE_AT);
    s->device_type = FIELD(int8_t, impl, DEVICE_AT);
    s->device_index = FIELD(int8_t, impl, DEVICE_AT + 1);
    s->keys = FIELD(uint64_t, whole, facts.keys_at);
    s->requires_grad = facts.requires_grad(whole);
}

static bool reads_gradient(const char *impl, int requires_at) {
    const char *meta = FIELD(char *, impl, META_AT);
    return meta && (FIELD(uint8_t, meta, requires_at) || FIELD(void *, meta, GRAD_FN_AT));
}

bool tensor_words(words *w, PyObject *tensor) {
    const char *whole = impl_of(tensor), *impl = whole + facts.shift;
    if (!facts.keys_at || !facts.requires_at)
        return false;
    words_add(w, (char *)tensor + facts.impl_at);
    words_add(w, impl + SIZES_AT);
    int64_t dims = FIELD(int64_t, impl, SIZES_AT);
    if (dims < 0 || dims > INLINE_SIZES)
        return false;
    for (int64_t d = 1; d <= dims; d++) {
        words_add(w, &FIELD(int64_t, impl, SIZES_AT) + d);
        words_add(w, &FIELD(int64_t, impl, SIZES_AT) + INLINE_SIZES + d);
    }
    words_add_part(w, impl + DTYPE_AT, 4);
    words_add(w, whole + facts.keys_at);
    words_add(w, whole + META_AT);
    const char *meta = FIELD(char *, whole, META_AT);
    if (meta)
        words_add_part(w, meta + facts.requires_at, 1);
    if (meta && !FIELD(uint8_t, meta, facts.requires_at)) // else the node says nothing more
        words_add(w, meta + GRAD_FN_AT);
    return true;
}

void offset_words(words *w, PyObject *tensor) {
    words_add(w, impl_of(tensor) + facts.shift + OFFSET_AT);
}

// The same by torch's C shims and builtins, where memory is not as expected. False, without an
// exception, if something cannot be read.
static bool read_shims(PyObject *tensor, seen *s) {
    void *handle = (char *)tensor + facts.impl_at;
    int64_t *sizes = NULL, *strides = NULL;
    PyObject *keys = PyObject_CallOneArg(glue_function("key_bits"), tensor);
    bool fine = keys && facts.get_dim(handle, &s->dims) == 0 &&
                facts.get_sizes(handle, &sizes) == 0 && facts.get_strides(handle, &strides) == 0 &&
                facts.get_dtype(handle, &s->dtype) == 0 &&
                facts.get_device_type(handle, &s->device_type) == 0 &&
                facts.get_device_index(handle, &s->device_index) == 0;
    s->keys = fine ? PyLong_AsUnsignedLongLongMask(keys) : 0;
    s->sizes = sizes;
    s->strides = strides;
    s->requires_grad = fine && facts.requires_grad(impl_of(tensor));
    Py_XDECREF(keys);
    PyErr_Clear();
    return fine;
}

bool read_tensor(PyObject *tensor, seen *s) {
    if (!facts.keys_at)
        return read_shims(tensor, s);
    read_raw(tensor, s);
    return true;
}

// By torch's C++: the Python getter asks modes, and may be replaced.
bool read_leaf(PyObject *tensor) {
    return facts.is_leaf((char *)tensor + facts.impl_at);
}

int64_t read_offset(PyObject *tensor) {
    int64_t offset = -1;
    if (facts.keys_at)
        return FIELD(int64_t, impl_of(tensor) + facts.shift, OFFSET_AT);
    (void)facts.get_offset((char *)tensor + facts.impl_at, &offset);
    return offset;
}

extent read_extent(PyObject *tensor) {
    const char *storage = FIELD(char *, impl_of(tensor), STORAGE_AT);
    if (!storage)
        return (extent){0};
    uintptr_t begin = FIELD(uintptr_t, storage, DATA_AT);
    return (extent){storage, begin, begin ? begin + FIELD(uintptr_t, storage, BYTES_AT) : 0};
}

PyObject *input_facts(PyObject *tensor) {
    seen s;
    if (!read_tensor(tensor, &s) || s.dims < 0 || s.dims > 64) {
        PyErr_SetString(PyExc_RuntimeError, "this tensor cannot be read");
        return NULL;
    }
    extent e = read_extent(tensor);
    return Py_BuildValue("(KNNiiiiL(KKK))", (unsigned long long)s.keys, int_tuple(s.sizes, s.dims),
                         int_tuple(s.strides, s.dims), s.dtype, s.device_type, s.device_index,
                         s.requires_grad, (long long)read_offset(tensor),
                         (unsigned long long)(uintptr_t)e.storage, (unsigned long long)e.begin,
                         (unsigned long long)e.end);
}

// --- dtypes and devices ---

int32_t rule_dtype(PyObject *o) {
    return Py_TYPE(o) == facts.dtype ? *(int8_t *)((char *)o + sizeof(PyObject)) : -1;
}

bool rule_device(PyObject *o, int32_t *type, int32_t *index) {
    const int8_t *fields = (int8_t *)((char *)o + sizeof(PyObject));
    if (Py_TYPE(o) != facts.device)
        return false;
    *type = fields[0];
    *index = fields[1];
    return true;
}

// --- finding out ---

static uint64_t attribute_number(PyObject *o, const char *name) {
    PyObject *value = PyObject_GetAttrString(o, name);
    uint64_t result = value ? PyLong_AsUnsignedLongLong(value) : 0;
    Py_XDECREF(value);
    return result;
}

// Where tensor objects point to their TensorImpl: all samples agree, or 0.
static int find_impl(PyObject *samples) {
    static const int places[] = {16, 24};
    for (size_t p = 0; p < Py_ARRAY_LENGTH(places); p++) {
        Py_ssize_t i = 0;
        for (; i < PyList_GET_SIZE(samples); i++) {
            PyObject *tensor = PyTuple_GET_ITEM(PyList_GET_ITEM(samples, i), 0);
            if (*(uint64_t *)((char *)tensor + places[p]) != attribute_number(tensor, "_cdata"))
                break;
        }
        if (i > 0 && i == PyList_GET_SIZE(samples) && !PyErr_Occurred())
            return places[p];
    }
    return 0;
}

static bool sample_has_keys_at(PyObject *sample, int at) {
    PyObject *tensor = PyTuple_GET_ITEM(sample, 0), *seen = PyTuple_GET_ITEM(sample, 1);
    const char *impl = *(const char **)((char *)tensor + facts.impl_at);
    uint64_t keys = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(seen, 0));
    return *(const uint64_t *)(impl + at) == keys;
}

static int find_keys(PyObject *samples) {
    for (int at = 160; at <= 200; at += 8) {
        Py_ssize_t i = 0;
        while (i < PyList_GET_SIZE(samples) && sample_has_keys_at(PyList_GET_ITEM(samples, i), at))
            i++;
        if (i > 0 && i == PyList_GET_SIZE(samples))
            return at;
    }
    return 0;
}

// Whether raw reads give what torch's attributes say: (keys, sizes, strides, dtype, device type,
// device index, requires_grad, offset).
static int samples_agree(PyObject *samples) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); i++) {
        PyObject *sample = PyList_GET_ITEM(samples, i);
        PyObject *seen = input_facts(PyTuple_GET_ITEM(sample, 0));
        int same = seen ? PyObject_RichCompareBool(seen, PyTuple_GET_ITEM(sample, 1), Py_EQ) : -1;
        Py_XDECREF(seen);
        if (same <= 0)
            return same;
    }
    return 1;
}

static bool samples_require_at(PyObject *samples, int at) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); i++) {
        const char *impl = impl_of(PyTuple_GET_ITEM(PyList_GET_ITEM(samples, i), 0));
        if (reads_gradient(impl, at) != facts.requires_grad(impl))
            return false;
    }
    return true;
}

// Where an AutogradMeta has `requires_grad`: behind pointers whose number differs by version. 0 if
// that is not clear. Its mutex lies behind all these places.
static int find_requires(PyObject *samples) {
    int found = 0, count = 0;
    for (int at = 112; at <= 152; at += 8)
        if (samples_require_at(samples, at)) {
            found = at;
            count++;
        }
    return count == 1 ? found : 0;
}

static int find_layout(PyObject *samples) {
    facts.impl_at = find_impl(samples);
    if (!facts.impl_at) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ImportError, "it keeps tensors in an unknown way");
        return -1;
    }
    facts.keys_at = find_keys(samples);
    facts.shift = facts.keys_at - KEYS_AT; // some versions keep one word more before all of these
    int agree = facts.keys_at ? samples_agree(samples) : 0;
    if (agree <= 0) {
        PyErr_Clear();
        facts.keys_at = 0; // shims only
        agree = samples_agree(samples);
    }
    facts.requires_at = facts.keys_at ? find_requires(samples) : 0;
    if (agree == 0)
        PyErr_SetString(PyExc_ImportError, "its tensors cannot be read");
    return agree > 0 ? 0 : -1;
}

int version_find(PyObject *c10, PyObject *cpu, PyObject *samples) {
    void *c10_handle = open_library(c10), *cpu_handle = c10_handle ? open_library(cpu) : NULL;
    return cpu_handle && find_symbols(c10_handle, cpu_handle) == 0 ? find_layout(samples) : -1;
}

bool node_hooks(void) {
    return facts.no_node_hooks && !facts.no_node_hooks();
}

// What this thread's state is: (grad mode, inference mode, how many function modes, included keys,
// excluded keys, whether hooks see new nodes of autograd), the keys as their difference to what is
// usual. New reference.
PyObject *version_state(void) {
    const uint64_t *keys = local_keys();
    if (!keys || !facts.mode_count) {
        PyErr_SetString(PyExc_RuntimeError, "torch is not attached");
        return NULL;
    }
    PyObject *grad =
        facts.grad_enabled ? PyBool_FromLong(facts.grad_enabled()) : Py_NewRef(Py_None);
    return Py_BuildValue("(NNLKKN)", grad, PyBool_FromLong(facts.inference()),
                         (long long)facts.mode_count(), (unsigned long long)keys[0],
                         (unsigned long long)keys[1], PyBool_FromLong(node_hooks()));
}
