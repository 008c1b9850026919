#include "mata.cuh"

WS_NAMES(mata, Mata, 512, 4)
WS_NAME_ROWS(mata, Mata)
