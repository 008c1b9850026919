#include "stt.cuh"

WS_NAMES(stt, Stt)
WS_NAME_ROWS(stt, Stt)
