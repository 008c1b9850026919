// STT, the state transition table: `crates/namelookup/src/stt`. A row of 256 links for each state, a link for each byte.
//
//     link   accepting:1, next state:31; a state past the last row is a leaf, whose result is all there is of it

#pragma once
#include "mata.cuh"

WS_CONSTANT(stt, STT_ROW, 256)

struct Stt {
    const u32* table;
    const void* results;
    // What patches change of it is the root's.
    const u64* head;
    // Rows, and results.
    u32 rows, states;
    u32 stride, unused;
    u32 result_bytes, staged;

    template <class Text>
    WS_FN Found find(const Text& text, u32 start, u32 end) const {
        return walk(TextNumbers<Text>(text, start, end, 1));
    }

    template <class Numbers>
    WS_FN Found walk(Numbers numbers) const {
        u32 state = u32(element(head + ALIGNED_ROOT_STATE_AT)), last = 0, length = 0, number;
        while (state != 0 && state < rows && numbers.next(&number)) {
            u32 link = element(table + u64(state) * STT_ROW + number % STT_ROW);
            state = link & ~u32(ALIGNED_ACCEPTING);
            if (link & ALIGNED_ACCEPTING) {
                last = state;
                length = numbers.length();
            }
        }
        if (last == 0 || last >= states) return Found{u32(element(head + ALIGNED_ROOT_RESULT_AT)), 0};
        return Found::at(result_at(results, last, result_bytes), length);
    }
};
