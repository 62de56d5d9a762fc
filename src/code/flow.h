// For this room only: the function of src/code/flow.c by which a decoded code object is freed.
#pragma once

#include "src/code/code.h"

void flow_free(flow *f);
