// Products in GHASH's field (NIST SP 800-38D, 6.3), without tables: the time that one takes depends on no bit of it.
//
// GPUs have no carry-less product. A product of integers is one where no carry reaches a bit that counts: factors are split into four
// with three zeroes between any two bits. Sums of at most eight bits then stay within their four, of which the lowest is the parity.
//
// An element is four words; the coefficient of x^0 is the highest bit of the first.

#pragma once
#include "wirespeed.cuh"

namespace ghash {

struct Wide {
    u64 high, low;
};

// The carry-less product of 32 bits and 32.
WS_FN u64 product(u32 x, u32 y) {
    const u32 hole = 0x11111111;
    u64 x0 = x & hole, x1 = x & hole << 1, x2 = x & hole << 2, x3 = x & hole << 3;
    u64 y0 = y & hole, y1 = y & hole << 1, y2 = y & hole << 2, y3 = y & hole << 3;
    const u64 holes = 0x1111111111111111;
    u64 z0 = x0 * y0 ^ x1 * y3 ^ x2 * y2 ^ x3 * y1;
    u64 z1 = x0 * y1 ^ x1 * y0 ^ x2 * y3 ^ x3 * y2;
    u64 z2 = x0 * y2 ^ x1 * y1 ^ x2 * y0 ^ x3 * y3;
    u64 z3 = x0 * y3 ^ x1 * y2 ^ x2 * y1 ^ x3 * y0;
    return (z0 & holes) | (z1 & holes << 1) | (z2 & holes << 2) | (z3 & holes << 3);
}

// That of 64 bits and 64, by three smaller ones (Karatsuba).
WS_FN Wide product(u32 x1, u32 x0, u32 y1, u32 y0) {
    u64 high = product(x1, y1), low = product(x0, y0);
    u64 middle = product(x0 ^ x1, y0 ^ y1) ^ high ^ low;
    return Wide{high ^ middle >> 32, low ^ middle << 32};
}

// Multiplies `a` by `b`.
WS_FN void multiply(u32 (&a)[4], const Vector<u32, 4>& b) {
    Wide high = product(a[0], a[1], b.at[0], b.at[1]);
    Wide low = product(a[2], a[3], b.at[2], b.at[3]);
    Wide middle = product(a[0] ^ a[2], a[1] ^ a[3], b.at[0] ^ b.at[2], b.at[1] ^ b.at[3]);
    middle.high ^= high.high ^ low.high;
    middle.low ^= high.low ^ low.low;
    u64 p3 = high.high, p2 = high.low ^ middle.high, p1 = low.high ^ middle.low, p0 = low.low;
    // The product of mirrored elements is one bit short.
    p3 = p3 << 1 | p2 >> 63;
    p2 = p2 << 1 | p1 >> 63;
    p1 = p1 << 1 | p0 >> 63;
    p0 = p0 << 1;
    // x^128 is 1 + x + x^2 + x^7. What the shifts push out of the lower half comes back at its upper end.
    p1 ^= p0 << 63 ^ p0 << 62 ^ p0 << 57;
    p3 ^= p1 ^ p1 >> 1 ^ p1 >> 2 ^ p1 >> 7;
    p2 ^= p0 ^ (p0 >> 1 | p1 << 63) ^ (p0 >> 2 | p1 << 62) ^ (p0 >> 7 | p1 << 57);
    a[0] = u32(p3 >> 32);
    a[1] = u32(p3);
    a[2] = u32(p2 >> 32);
    a[3] = u32(p2);
}

}  // namespace ghash
