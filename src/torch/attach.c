// Finds torch: its types and functions by name from the Python glue, its C++ functions by symbol,
// and where a tensor keeps what in memory, which is verified on sample tensors before it is
// believed.
#include "src/call/attr.h"

#include "src/torch/room.h"

#include <dlfcn.h>

torch_facts facts;

PyObject *glue_function(const char *name) {
    PyObject *found = PyDict_GetItemString(facts.glue, name);
    return found ? found : Py_None; // calling it raises
}

// --- symbols ---

static void *open_library(PyObject *path) {
    const char *name = PyUnicode_AsUTF8(path);
    void *handle = name ? dlopen(name, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    if (!handle && name)
        PyErr_Format(PyExc_ImportError, "%s is not loaded", name);
    return handle;
}

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
            PyErr_Format(PyExc_ImportError, "this torch has no %s", symbols[i].name);
            return -1;
        }
        memcpy(symbols[i].place, &found, sizeof(void *));
    }
    facts.local_keys = c10;
    return 0;
}

// --- layout ---

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

enum { KEYS_AT = 168 }; // where the offsets of inputs.c go with

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

static int find_layout(PyObject *samples) {
    facts.impl_at = find_impl(samples);
    if (!facts.impl_at) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ImportError, "this torch keeps tensors in an unknown way");
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
    if (agree == 0)
        PyErr_SetString(PyExc_ImportError, "this torch's tensors cannot be read");
    return agree > 0 ? 0 : -1;
}

// --- attaching ---

static PyObject *setting(PyObject *settings, const char *name) {
    PyObject *found = PyDict_GetItemString(settings, name);
    if (!found)
        PyErr_Format(PyExc_KeyError, "%s", name);
    return Py_XNewRef(found);
}

static int take_objects(PyObject *settings) {
    const struct {
        const char *name;
        void *place;
    } objects[] = {
        {"TensorBase", &facts.base},
        {"Tensor", &facts.tensor},
        {"Parameter", &facts.parameter},
        {"Buffer", &facts.buffer},
        {"FakeTensor", &facts.fake},
        {"Size", &facts.size},
        {"dtype", &facts.dtype},
        {"device", &facts.device},
        {"layout", &facts.layout},
        {"memory_format", &facts.memory_format},
        {"OpOverload", &facts.overload},
        {"OpOverloadPacket", &facts.packet},
        {"RemovableHandle", &facts.handle},
        {"set_grad_enabled", &facts.set_grad},
        {"increment_nesting", &facts.increment},
        {"decrement_nesting", &facts.decrement},
        {"clear_autocast_cache", &facts.clear_cache},
        {"module_call", &facts.module_call},
        {"glue", &facts.glue},
        {"data_dependent", &facts.data_dependent},
        {"attributes", &facts.attributes},
        {"getitem", &facts.getitem},
        {"setitem", &facts.setitem},
        {"getattr", &facts.getattr},
        {"GlobalStateGuard", &facts.state_guard},
        {"get_default_dtype", &facts.get_default_dtype},
        {"copying", &facts.copying},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(objects); i++) {
        PyObject *found = setting(settings, objects[i].name);
        if (!found)
            return -1;
        memcpy(objects[i].place, &found, sizeof(found));
    }
    return 0;
}

static int take_list(PyObject *settings, const char *name, PyObject **places, Py_ssize_t room) {
    PyObject *list = setting(settings, name);
    if (!list || !PyList_Check(list) || PyList_GET_SIZE(list) > room) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%s", name);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
        places[i] = Py_NewRef(PyList_GET_ITEM(list, i));
    return 0;
}

static int find_pybind(PyObject *settings) {
    PyObject *class = setting(settings, "pybind_class");
    if (!class)
        return -1;
    if (PyType_Check(class) && strcmp(Py_TYPE(class)->tp_name, "pybind11_type") == 0)
        attr_pybind_class = Py_TYPE(class)->tp_getattro;
    Py_DECREF(class); // torch's, which stays
    return 0;
}

// --- rules ---

// (dtype, number): whether they lie where rules look for them.
static bool take_dtypes(PyObject *list) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *dtype;
        int number;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "Oi", &dtype, &number) || number < 0 ||
            number >= (int)Py_ARRAY_LENGTH(facts.dtypes) || rule_dtype(dtype) != number)
            return false;
        facts.dtypes[number] = Py_NewRef(dtype);
    }
    return true;
}

// (device, type, index).
static bool check_devices(PyObject *list) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *device;
        int32_t type, index, real_type, real_index;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "Oii", &device, &real_type, &real_index) ||
            !rule_device(device, &type, &index) || type != real_type || index != real_index)
            return false;
    }
    return true;
}

static bool take_keys(PyObject *settings) {
    PyObject *odd = PyDict_GetItemString(settings, "odd_keys");
    PyObject *usual = PyDict_GetItemString(settings, "usual_keys");
    PyObject *dense = PyDict_GetItemString(settings, "dense_keys");
    if (!odd || !usual || !dense)
        return false;
    facts.odd_keys = PyLong_AsUnsignedLongLongMask(odd);
    facts.usual_keys = PyLong_AsUnsignedLongLongMask(usual);
    facts.dense_keys = PyLong_AsUnsignedLongLongMask(dense);
    return true;
}

// For texts: how devices and what else dispatch keys tell are called. Where it is not known,
// numbers are shown.
static bool take_words(PyObject *settings) {
    PyObject *devices = PyDict_GetItemString(settings, "device_words");
    PyObject *keys = PyDict_GetItemString(settings, "key_words");
    for (Py_ssize_t i = 0; devices && i < PyList_GET_SIZE(devices); i++) {
        PyObject *device, *word;
        int32_t type, index;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(devices, i), "OU", &device, &word) ||
            !rule_device(device, &type, &index) || type < 0 ||
            type >= (int)Py_ARRAY_LENGTH(facts.device_names))
            return false;
        Py_XSETREF(facts.device_names[type], Py_NewRef(word));
    }
    facts.key_words = Py_XNewRef(keys);
    return true;
}

// (callable, name of its rule).
static bool take_rules(PyObject *list) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *callable;
        const char *name;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "Os", &callable, &name))
            return false;
        const meta_rule *r = meta_find(name);
        if (!r || map_put(&facts.rules, map_key(Py_NewRef(callable)), map_key(r)) != ST_OK)
            return false;
    }
    return true;
}

// Without them each operation is run on fakes.
static void attach_rules(PyObject *settings) {
    PyObject *dtypes = PyDict_GetItemString(settings, "dtypes");
    PyObject *devices = PyDict_GetItemString(settings, "devices");
    PyObject *rules = PyDict_GetItemString(settings, "rules");
    facts.rules_on = facts.grad_enabled && facts.keys_at && dtypes && devices && rules &&
                     take_dtypes(dtypes) && check_devices(devices) && take_keys(settings) &&
                     take_words(settings) && take_rules(rules);
    PyErr_Clear();
}

static int attach_all(PyObject *settings) {
    PyObject *c10 = setting(settings, "libc10"), *cpu = setting(settings, "libtorch_cpu");
    void *c10_handle = c10 ? open_library(c10) : NULL, *cpu_handle = cpu ? open_library(cpu) : NULL;
    PyObject *samples = setting(settings, "samples"), *rows = setting(settings, "rows");
    if (!c10_handle || !cpu_handle || !samples || !rows || take_objects(settings) < 0)
        return -1;
    if (take_list(settings, "binary", facts.binary, Py_ARRAY_LENGTH(facts.binary)) < 0 ||
        take_list(settings, "compare", facts.compare, Py_ARRAY_LENGTH(facts.compare)) < 0)
        return -1;
    if (find_symbols(c10_handle, cpu_handle) < 0 || find_layout(samples) < 0 ||
        find_pybind(settings) < 0)
        return -1;
    PyObject *fields = setting(settings, "fields");
    if (!fields || table_add_fields(fields) < 0)
        return -1;
    attach_rules(settings);
    return standin_setup() < 0 ? -1 : table_fill(rows);
}

// torch_attach(settings): once; torch stays attached.
PyObject *attach(PyObject *module, PyObject *settings) {
    (void)module;
    if (world_tensors)
        Py_RETURN_NONE;
    if (!PyDict_Check(settings)) {
        PyErr_SetString(PyExc_TypeError, "torch_attach takes a dict");
        return NULL;
    }
    if (attach_all(settings) < 0)
        return NULL;
    source_read_tensor = input_attribute;
    raw_key_type(facts.device);
    world_tensors = &torch_ops;
    Py_RETURN_NONE;
}
