#include "acta.cuh"

WS_NAMES(acta, Acta)
