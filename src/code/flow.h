// Within this room: what code_of's release needs of src/code/flow.c.
#pragma once

#include "src/code/code.h"

void flow_free(flow *f);
