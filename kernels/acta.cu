#include "acta.cuh"

WS_NAMES(acta, Acta, 512, 2)
