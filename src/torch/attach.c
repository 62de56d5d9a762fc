// Attaches torch: takes its types and functions from the Python glue. Tensors are traced once
// everything that Stator relies on was found (version.c) and tried out (the glue's `check`).
#include "src/attr/attr.h"

#include "src/torch/room.h"

torch_facts facts;

PyObject *glue_function(const char *name) {
    PyObject *found = PyDict_GetItemString(facts.glue, name);
    return found ? found : Py_None; // calling it raises
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
        {"operator_homes", &facts.operator_homes},
        {"RemovableHandle", &facts.handle},
        {"DisableTorchFunctionSubclass", &facts.no_subclasses},
        {"DisableTorchFunction", &facts.no_functions},
        {"disabled_torch_function", &facts.disabled},
        {"alias", &facts.alias},
        {"as_subclass", &facts.as_subclass},
        {"detach", &facts.detach},
        {"Module", &facts.module},
        {"set_grad_enabled", &facts.set_grad},
        {"increment_nesting", &facts.increment},
        {"skips_one_hop", &facts.skips_one_hop},
        {"decrement_nesting", &facts.decrement},
        {"clear_autocast_cache", &facts.clear_cache},
        {"module_call", &facts.module_call},
        {"region_call", &facts.region_call},
        {"glue", &facts.glue},
        {"data_dependent", &facts.data_dependent},
        {"attributes", &facts.attributes},
        {"getitem", &facts.getitem},
        {"setitem", &facts.setitem},
        {"select", &facts.select},
        {"unbind", &facts.unbind},
        {"getattr", &facts.getattr},
        {"GlobalStateGuard", &facts.state_guard},
        {"get_default_dtype", &facts.get_default_dtype},
        {"get_flash_enabled", &facts.get_flash_enabled},
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
        attr_know_pybind(Py_TYPE(class));
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
    PyObject *autocast = PyDict_GetItemString(settings, "autocast_keys");
    PyObject *inference = PyDict_GetItemString(settings, "inference_keys");
    PyObject *python = PyDict_GetItemString(settings, "python_keys");
    PyObject *level = PyDict_GetItemString(settings, "level_keys");
    PyObject *wrapping = PyDict_GetItemString(settings, "wrapping_keys");
    if (!wrapping || !odd || !usual || !dense || !autocast || !inference || !python || !level)
        return false;
    facts.odd_keys = PyLong_AsUnsignedLongLongMask(odd);
    facts.usual_keys = PyLong_AsUnsignedLongLongMask(usual);
    facts.python_keys = PyLong_AsUnsignedLongLongMask(python);
    facts.level_keys = PyLong_AsUnsignedLongLongMask(level);
    facts.dense_keys = PyLong_AsUnsignedLongLongMask(dense);
    facts.autocast_keys = PyLong_AsUnsignedLongLongMask(autocast);
    facts.wrapping_keys = PyLong_AsUnsignedLongLongMask(wrapping);
    facts.inference_keys[0] = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(inference, 0));
    facts.inference_keys[1] = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(inference, 1));
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

static int check_behaviour(PyObject *settings) {
    PyObject *check = setting(settings, "check");
    PyObject *done = check ? PyObject_CallOneArg(check, facts.glue) : NULL;
    Py_XDECREF(check);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int attach_all(PyObject *settings) {
    PyObject *c10 = setting(settings, "libc10"), *cpu = setting(settings, "libtorch_cpu");
    PyObject *samples = setting(settings, "samples"), *rows = setting(settings, "rows");
    if (!c10 || !cpu || !samples || !rows || take_objects(settings) < 0)
        return -1;
    if (take_list(settings, "binary", facts.binary, Py_ARRAY_LENGTH(facts.binary)) < 0 ||
        take_list(settings, "compare", facts.compare, Py_ARRAY_LENGTH(facts.compare)) < 0)
        return -1;
    if (version_find(c10, cpu, samples) < 0 || find_pybind(settings) < 0)
        return -1;
    PyObject *fields = setting(settings, "fields");
    if (!fields || table_add_fields(fields) < 0)
        return -1;
    attach_rules(settings);
    return standin_setup() < 0 || arrays_setup() < 0 || table_fill(rows) < 0
               ? -1
               : check_behaviour(settings);
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
    world_own_files = Py_XNewRef(PyDict_GetItemString(facts.glue, "own_files"));
    handles_know(PyDict_GetItemString(facts.glue, "hook_dicts"),
                 PyDict_GetItemString(facts.glue, "hook_codes"));
    source_read_tensor = input_attribute;
    source_read_sizes = input_sizes;
    source_read_array = arrays_tensor;
    source_stack = glue_function("mode_at");
    raw_key_type(facts.device);
    special_add_slots(types_slots);
    world_tensors = &torch_ops;
    standin_add_kind(&tensor_kind);
    standin_add_kind(&array_kind);
    Py_RETURN_NONE;
}
