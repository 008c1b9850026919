// Reads of a table for those of a thread's keys that want one, several at a time.
//
// A branch around each read would let the threads of a warp part and meet again for each key; here the read itself is what
// happens or doesn't, so that all of a thread's reads follow one another whichever keys want them.

#pragma once
#include "wirespeed.cuh"

// Reads an element where `wanted` isn't 0; otherwise `to` stays what it was, and the address may be any.
template <class T>
WS_FN void read_if(u32 wanted, const T* at, u32& to) {
    to = element_if(wanted != 0, at, to);
}
template <class T>
WS_FN void read_if(u32 wanted, const T* at, u64& to) {
    static_assert(sizeof(T) == 8, "an element of 8 bytes");
#if WS_GPU
    asm("{.reg .pred p; setp.ne.u32 p, %1, 0; @p ld.global.nc.u64 %0, [%2];}" : "+l"(to) : "r"(wanted), "l"(at));
#else
    if (wanted != 0) to = *at;
#endif
}

// `found[i]` becomes element `index(i)` for each i whose bit is set in `wanted`, and stays what it was for the others.
template <class T, int N, class Index>
WS_FN void gather_of(const void* elements, u32 wanted, const Index& index, u32* found) {
    WS_UNROLL
    for (int i = 0; i < N; i++) read_if(wanted & 1u << i, static_cast<const T*>(elements) + index(i), found[i]);
}

// The same of elements of 1, 2 or 4 bytes, which only the table knows: it is the same for all threads, so that none part ways
// over it.
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
