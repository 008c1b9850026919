#include "quilt.cuh"

WS_TUPLES(quilt, Quilt, 1024, 1)
WS_TUPLES_OF(quilt, Quilt, Tuple16, 16, 1024, 1)
