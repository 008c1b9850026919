#include "mata.cuh"

WS_NAMES(mata, Mata)
WS_NAME_ROWS(mata, Mata)
