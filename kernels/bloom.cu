#include "classes.cuh"

WS_TUPLES(bloom, Classes<true>, 512, 1)
