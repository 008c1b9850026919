#include "linear.cuh"

WS_TUPLES(linear, Linear, 512, 1)
WS_TUPLES_OF(linear, Linear, Tuple16, 16, 512, 1)
