#include "linear.cuh"

WS_TUPLES(linear, Linear, 512, 1)
