// ACTA: `crates/namelookup/src/acta`. A component is a step: its hash and the state give a bucket, whose entry has the component's
// bytes to compare, the next state and the result.
//
//     bucket  64 bytes: head u16, headers u16 × n, zeros, payloads from the end backwards
//     header  length:6 leads:1 ends:1 choice:1 turn:4 tag:3
//
// What a component costs: the sector with head and headers, which has all 15 of them at most, and the sector with the payload, mostly the
// other one of the same 64 bytes, which is called for together with the first. The filter in the head keeps nearly all
// lookups from the second bucket. The first 16 bytes of a component, nearly always all, are hashed and compared in registers.

#pragma once
#include "names.cuh"

WS_CONSTANT(acta, ACTA_BUCKET_BYTES, 64)
WS_CONSTANT(acta, ACTA_BASE_BITS, 28)
WS_CONSTANT(acta, ACTA_LONG, 63)
WS_CONSTANT(acta, ACTA_LEADS, 1 << 6)
WS_CONSTANT(acta, ACTA_ENDS, 1 << 7)
WS_CONSTANT(acta, ACTA_CHOICE_SHIFT, 8)
WS_CONSTANT(acta, ACTA_HEADER_TURN_SHIFT, 9)
WS_CONSTANT(acta, ACTA_TAG_SHIFT, 13)
WS_CONSTANT(acta, ACTA_FILTER_SHIFT, 4)
WS_CONSTANT(acta, ACTA_FILTER_BITS, 12)
WS_CONSTANT(acta, ACTA_INLINE_MOST, 40)
WS_CONSTANT(acta, ACTA_ROOT_STATE_AT, 4)
WS_CONSTANT(acta, ACTA_ROOT_RESULT_AT, 5)
WS_CONSTANT(acta, ACTA_K, 0x9e3779b97f4a7c15)
WS_CONSTANT(acta, ACTA_K2, 0xd1342543de82ef95)

// Both halves of a product, one laid over the other.
WS_FN u64 fold_product(u64 a, u64 b) {
#if WS_GPU
    return __umul64hi(a, b) ^ a * b;
#else
    __extension__ typedef unsigned __int128 u128;
    u128 product = u128(a) * b;
    return u64(product >> 64) ^ u64(product);
#endif
}

// Calls for the sector at a place ahead of the loads that wait for it.
WS_FN void call_for(const void* at) {
#if WS_GPU
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
#else
    (void)at;
#endif
}

struct Acta {
    // 8 words a bucket, and one bucket at least.
    const u64* buckets;
    // The bytes of long components, as words of 4 here.
    const u32* longs;
    // What patches change of it is the root's.
    const u64* head;
    u64 seed0, seed1;
    // Of 8 bytes.
    u64 long_words;
    u32 bucket_count;
    // Bytes of a result in a payload.
    u32 width;
    u32 result_bytes, staged;

    // A component, as it was hashed.
    struct Component {
        u32 start, length;
        // The first 16 bytes, zeros after its end.
        u32 head[4];
        u64 hash;
    };

    // An entry: whether there is one, where its payload ends in the bucket, and its header.
    struct Entry {
        u32 end, header;
        WS_FN bool is_there() const { return end != 0; }
    };

    template <class Text>
    WS_FN Found find(const Text& text, u32 start, u32 end) const {
        Found found{u32(element(head + ACTA_ROOT_RESULT_AT)), 0};
        u64 root = element(head + ACTA_ROOT_STATE_AT);
        u32 state = u32(root), at = start;
        // All ones where it has no children.
        bool leads = root >> 32 == 0;
        while (leads && at < end) {
            // The slash.
            at++;
            Component component = read(text, at, end);
            at += component.length;
            u32 bucket;
            Entry entry = entry_of(text, component, state, &bucket);
            if (!entry.is_there()) break;
            const u32* words = words_of(bucket);
            u32 payload = entry.end;
            if (entry.header & ACTA_ENDS) {
                found = Found{bytes_of(words, payload - 4) >> (32 - 8 * width), at - start};
                payload -= width;
            }
            leads = (entry.header & ACTA_LEADS) != 0;
            if (leads) state = bytes_of(words, payload - 4);
        }
        return found;
    }

    // The component from `at` on, up to a slash or `end`.
    template <class Text>
    WS_FN Component read(const Text& text, u32 at, u32 end) const {
        Component component;
        component.start = at;
        u64 sum = seed0;
        u32 last = text.word_before(at / 4, end), shift = at % 4 * 8;
        bool is_first = true, goes_on;
        do {
            u32 words[4], count = 0;
            WS_UNROLL
            for (u32 i = 0; i < 4; i++) {
                u32 next = text.word_before(at / 4 + i + 1, end);
                words[i] = funnel(last, next, shift);
                last = next;
            }
            goes_on = true;
            WS_UNROLL
            for (u32 i = 0; i < 4; i++) {
                u32 bytes = first_slash(words[i]);
                u32 left = end - at - count;
                bytes = goes_on ? (bytes < left ? bytes : left) : 0;
                words[i] = keep_bytes(words[i], bytes);
                count += bytes;
                goes_on = bytes == 4;
            }
            at += count;
            if (is_first || count != 0) {
                u64 a = u64(words[1]) << 32 | words[0], b = u64(words[3]) << 32 | words[2];
                sum = fold_product(sum ^ a, b ^ (ACTA_K ^ seed1));
            }
            if (is_first) {
                WS_UNROLL
                for (int i = 0; i < 4; i++) component.head[i] = words[i];
            }
            is_first = false;
        } while (goes_on);
        component.length = at - component.start;
        component.hash = fold_product(sum ^ component.length, ACTA_K2 ^ seed0);
        return component;
    }

    // The entry of a component after a state, in its first bucket or its second.
    template <class Text>
    WS_FN Entry entry_of(const Text& text, const Component& component, u32 state, u32* bucket) const {
        u32 base = state % (1u << ACTA_BASE_BITS), turn = state >> ACTA_BASE_BITS;
        u32 high = u32(component.hash >> 32), low = u32(component.hash);
        u32 length = component.length <= ACTA_INLINE_MOST ? component.length : u32(ACTA_LONG);
        u32 wanted = length | turn << ACTA_HEADER_TURN_SHIFT | (high & 7) << ACTA_TAG_SHIFT;
        for (u32 choice = 0;; choice++) {
            u32 jump = u32(u64(choice == 0 ? high : low) * bucket_count >> 32);
            // The base is below the number of buckets, and so is the sum once that is taken off.
            u32 at = base + jump;
            if (at >= bucket_count) at -= bucket_count;
            if (at >= bucket_count) return Entry{0, 0};
            *bucket = at;
            u32 filter;
            Entry entry = search(text, component, at, wanted | choice << ACTA_CHOICE_SHIFT, &filter);
            u32 bit = (low & 0xffff) * u32(ACTA_FILTER_BITS) >> 16;
            if (entry.is_there() || choice != 0 || (filter >> bit & 1) == 0) return entry;
        }
    }

    // The entry of a bucket that has this header and these bytes; and the bucket's filter.
    //
    // All headers are gone through before any bytes are compared: threads of a warp find theirs at different places, and would
    // compare one after the other. Of several entries with the wanted header, one in a hundred buckets or fewer, those after the
    // first are looked at once that has turned out to be another.
    template <class Text>
    WS_FN Entry search(const Text& text, const Component& component, u32 bucket, u32 wanted, u32* filter) const {
        const u64* words = buckets + u64(bucket) * (ACTA_BUCKET_BYTES / 8);
        call_for(words + ACTA_BUCKET_BYTES / 16);
        // Their sector, at once: 15 headers at most.
        auto low = pair_of(words), high = pair_of(words + 2);
        u64 word = low.at[0];
        u32 count = u32(word) & 15, headers = 2 + 2 * count;
        *filter = (u32(word) & 0xffff) >> ACTA_FILTER_SHIFT;
        for (u32 from = 1;;) {
            u32 end = ACTA_BUCKET_BYTES, found = 0, found_size = 0, found_header = 0, next = 0;
            for (u32 i = 1; i <= count; i++) {
                if (i % 4 == 0) {
                    word = i == 4 ? low.at[1] : i == 8 ? high.at[0] : high.at[1];
                } else {
                    word = (i == 1 ? low.at[0] : word) >> 16;
                }
                u32 header = u32(word) & 0xffff, length = header % (1u << 6);
                u32 size = length == ACTA_LONG ? 8 : length;
                if (header & ACTA_LEADS) size += 4;
                if (header & ACTA_ENDS) size += width;
                // Payloads that lap over headers are of no table.
                if (end < headers + size) break;
                if ((header & ~u32(ACTA_LEADS | ACTA_ENDS)) == wanted && i >= from) {
                    if (found == 0) {
                        found = end, found_size = size, found_header = header;
                    } else if (next == 0) {
                        next = i;
                    }
                }
                end -= size;
            }
            if (found == 0) return Entry{0, 0};
            if (has(text, component, words_of(bucket), found - found_size)) return Entry{found, found_header};
            if (next == 0) return Entry{0, 0};
            from = next;
        }
    }

    // Two words of a bucket at once.
    static WS_FN Vector<u64, 2> pair_of(const u64* at) {
#if WS_GPU
        auto v = __ldg(reinterpret_cast<const ulonglong2*>(at));
        return Vector<u64, 2>{{v.x, v.y}};
#else
        return *reinterpret_cast<const Vector<u64, 2>*>(at);
#endif
    }

    // Whether the payload at a place in a bucket is of this component.
    template <class Text>
    WS_FN bool has(const Text& text, const Component& component, const u32* words, u32 at) const {
        u32 end = component.start + component.length;
        if (component.length > ACTA_INLINE_MOST) {
            u32 place = bytes_of(words, at), length = bytes_of(words, at + 4);
            if (length != component.length || u64(place) + (length + 7) / 8 > long_words) return false;
            const u32* bytes = longs + u64(place) * 2;
            for (u32 done = 0; done < length; done += 4) {
                u32 here = keep_bytes(text.four(component.start + done, end), length - done);
                if (here != element(bytes + done / 4)) return false;
            }
            return true;
        }
        u32 differ = 0, shift = at % 4 * 8, last = word_of(words, at / 4);
        WS_UNROLL
        for (u32 i = 0; i < 4; i++) {
            if (i * 4 < component.length) {
                u32 next = word_of(words, at / 4 + i + 1);
                differ |= keep_bytes(funnel(last, next, shift), component.length - 4 * i) ^ component.head[i];
                last = next;
            }
        }
        for (u32 done = 16; done < component.length && differ == 0; done += 4) {
            u32 here = text.four(component.start + done, end);
            differ = keep_bytes(here ^ bytes_of(words, at + done), component.length - done);
        }
        return differ == 0;
    }

    WS_FN const u32* words_of(u32 bucket) const {
        return reinterpret_cast<const u32*>(buckets) + u64(bucket) * (ACTA_BUCKET_BYTES / 4);
    }

    // A word of a bucket, the last one for those after it.
    static WS_FN u32 word_of(const u32* words, u32 at) {
        return element(words + (at < ACTA_BUCKET_BYTES / 4 ? at : ACTA_BUCKET_BYTES / 4 - 1));
    }

    // Four bytes of a bucket.
    static WS_FN u32 bytes_of(const u32* words, u32 at) {
        return funnel(word_of(words, at / 4), word_of(words, at / 4 + 1), at % 4 * 8);
    }
};
