#include "quilt.cuh"

WS_TUPLES(quilt, Quilt, 1024, 1)
