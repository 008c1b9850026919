// SHA-1's compression (FIPS 180-4, 6.1.2): a block of 16 words into a state of five.

#pragma once
#include "wirespeed.cuh"

namespace sha1 {

template <int BITS>
WS_FN u32 left(u32 v) {
    return v << BITS | v >> (32 - BITS);
}

// The block is used up: it becomes the last words of its schedule.
WS_FN void compress(u32 (&state)[5], u32 (&block)[16]) {
    u32 a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    WS_UNROLL
    for (int t = 0; t < 80; t++) {
        u32& w = block[t & 15];
        if (t >= 16) w = left<1>(block[(t + 13) & 15] ^ block[(t + 8) & 15] ^ block[(t + 2) & 15] ^ w);
        u32 mixed = t < 20 ? ((b & c) | (~b & d)) + 0x5a827999
                  : t < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                  : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                           : (b ^ c ^ d) + 0xca62c1d6;
        u32 next = left<5>(a) + mixed + e + w;
        e = d;
        d = c;
        c = left<30>(b);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

}  // namespace sha1
