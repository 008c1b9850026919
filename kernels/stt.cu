#include "stt.cuh"

WS_NAMES(stt, Stt, 512, 4)
WS_NAME_ROWS(stt, Stt)
