// Arrays whose elements have a width that only the table knows. It is the same for all threads, so that none part ways over it.

#pragma once
#include "wirespeed.cuh"

template <class T, int N, class Index>
WS_FN void gather_of(const void* elements, u32 wanted, const Index& index, u32* found) {
    WS_UNROLL
    for (int i = 0; i < N; i++) {
        if (wanted >> i & 1) found[i] = element(static_cast<const T*>(elements) + index(i));
    }
}

// `found[i]` becomes element `index(i)` for each i whose bit is set in `wanted`, and stays what it was for the others.
// Elements of 1, 2 or 4 bytes.
template <int N, class Index>
WS_FN void gather(const void* elements, u32 width, u32 wanted, const Index& index, u32* found) {
    if (width == 1) {
        gather_of<u8, N>(elements, wanted, index, found);
    } else if (width == 2) {
        gather_of<u16, N>(elements, wanted, index, found);
    } else {
        gather_of<u32, N>(elements, wanted, index, found);
    }
}
