#include "classes.cuh"

WS_TUPLES(tuple_search, Classes<false>, 512, 1)
