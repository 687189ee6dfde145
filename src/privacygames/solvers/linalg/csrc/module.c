/* The extension module: checks the arguments of every kernel and calls it without the global interpreter lock.

It is written against CPython's stable ABI, so one build serves every Python from 3.11 on. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <string.h>

#include "kernel.h"

/* The letters of arguments: arrays of doubles, floats, 32-bit and 64-bit integers and bytes, capital if written to;
   x is a float and k an integer. */
static int matches(const Py_buffer *view, char letter)
{
    char format = view->format == 0 ? 'B' : view->format[0];
    switch (letter) {
    case 'd': return format == 'd' && view->itemsize == 8;
    case 'f': return format == 'f' && view->itemsize == 4;
    case 'i': return (format == 'i' || format == 'l') && view->itemsize == 4;
    case 'l': return (format == 'l' || format == 'q') && view->itemsize == 8;
    case 'b': return (format == 'B' || format == 'b' || format == '?') && view->itemsize == 1;
    default: return 0;
    }
}

static int take_array(PyObject *object, char letter, Py_buffer *view, Argument *argument)
{
    int written = letter >= 'A' && letter <= 'Z';
    char kind = written ? (char)(letter - 'A' + 'a') : letter;
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (written ? PyBUF_WRITABLE : 0)) != 0)
        return 0;
    if (!matches(view, kind)) {
        PyErr_Format(PyExc_TypeError, "an array of kind '%c' was expected, not of format '%s'", kind,
                     view->format == 0 ? "B" : view->format);
        PyBuffer_Release(view);
        return 0;
    }
    argument->start = view->buf;
    argument->count = (long)(view->len / view->itemsize);
    return 1;
}

static PyObject *call(Kernel kernel, const char *letters, PyObject *const *objects, Py_ssize_t count)
{
    Argument arguments[MAX_ARGUMENTS];
    Py_buffer views[MAX_ARGUMENTS];
    int arrays = 0;
    PyObject *result = 0;
    if (count != (Py_ssize_t)strlen(letters)) {
        PyErr_Format(PyExc_TypeError, "%zd arguments were expected, not %zd", (Py_ssize_t)strlen(letters), count);
        return 0;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        if (letters[index] == 'x')
            arguments[index].x = PyFloat_AsDouble(objects[index]);
        else if (letters[index] == 'k')
            arguments[index].k = PyLong_AsLong(objects[index]);
        else if (take_array(objects[index], letters[index], &views[arrays], &arguments[index]))
            arrays++;
        if (PyErr_Occurred())
            goto release;
    }
    double value;
    Py_BEGIN_ALLOW_THREADS
    value = kernel(arguments);
    Py_END_ALLOW_THREADS
    result = PyFloat_FromDouble(value);
release:
    while (arrays > 0)
        PyBuffer_Release(&views[--arrays]);
    return result;
}

#define KERNELS                                                                                                        \
    KERNEL(factorise, "ldliiddlkdklddDDkk", "Factorise blocks and add up their Schur complement.")                     \
    KERNEL(solve, "dldDkk", "Solve with factorised blocks.")                                                           \
    KERNEL(ratio_slacks, "dliidDkk", "The slacks of ratio bounds.")                                                    \
    KERNEL(ratio_adjoint, "dliidDkk", "The transpose of the slacks.")                                                  \
    KERNEL(ratio_hessian, "dliidDDkk", "The normal matrix: its diagonals, and its entries at pairs.")                  \
    KERNEL(mark_ratios, "dffbliikBLkk", "Mark the pairs of the next working set.")                                     \
    KERNEL(list_ratios, "dddddblLIIDDkkx", "List the marked pairs, and the step that they allow.")                     \
    KERNEL(inherit_duals, "lldlldxDk", "The dual values of a working set, from those of the set before.")              \
    KERNEL(cancel_opposites, "dliidDk", "Dual values less what opposite pairs have in common.")                        \
    KERNEL(extension_bounds, "dddDDkk", "The least and most entries of further rows.")                                 \
    KERNEL(triangle_inequality_holds, "ddlk", "Whether exponents satisfy the triangle inequality.")                    \
    KERNEL(divide, "ddDk", "Quotients.")                                                                               \
    KERNEL(axpy, "xddDk", "a x + y.")                                                                                  \
    KERNEL(least_growth, "ddddDk", "The least relative growth of slacks and dual values.")                             \
    KERNEL(direction_change, "dddDddDDk", "The change of dual values along a direction, and the least growth.")        \
    KERNEL(shifted_change, "ddddDDk", "A direction's change after a shift of dual values.")                            \
    KERNEL(mehrotra_change, "ddddxxDk", "Mehrotra's corrector.")                                                       \
    KERNEL(gondzio_change, "ddddxxxxDk", "Gondzio's corrector.")                                                       \
    KERNEL(complementarity_after, "ddddxxk", "The sum of products after steps.")                                       \
    KERNEL(blocking_ratios, "ddddxDLk", "The inequalities that limit a step most.")                                     \
    KERNEL(step_ratios, "ddxDk", "The step ratios above a threshold.")

#define KERNEL(name, letters, text)                                                                                    \
    static PyObject *call_##name(PyObject *module, PyObject *const *objects, Py_ssize_t count)                        \
    {                                                                                                                  \
        (void)module;                                                                                                  \
        return call(name, letters, objects, count);                                                                   \
    }
KERNELS
#undef KERNEL

#define KERNEL(name, letters, text) {#name, (PyCFunction)(void (*)(void))call_##name, METH_FASTCALL, text},
static PyMethodDef methods[] = {KERNELS{0}};
#undef KERNEL

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled loops over blocks, ratios and inequalities.", 0, methods, 0, 0, 0, 0,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    return PyModuleDef_Init(&definition);
}
