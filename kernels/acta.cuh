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

    // Two headers a word; the first of the eight is the bucket's head.
    struct Headers {
        u32 words[4];
    };

    // An entry: where its payload starts in the bucket, and its header; no entry has a header of zeros.
    struct Entry {
        u32 start, header;
    };

    // One probe of a bucket a round, whether it is of a component's first bucket or its second: threads of a warp that need both go
    // on beside those that are at their next component.
    template <class Text>
    WS_FN Found find(const Text& text, u32 start, u32 end) const {
        Found found{u32(element(head + ACTA_ROOT_RESULT_AT)), 0};
        u64 root = element(head + ACTA_ROOT_STATE_AT);
        u32 state = u32(root), at = start, wanted = 0, jump = 0;
        Component component;
        bool is_second = false;
        // All ones where it has no children.
        bool goes_on = root >> 32 == 0 && at < end;
        while (goes_on) {
            if (!is_second) {
                // After the slash.
                component = read(text, at + 1, end);
                at = component.start + component.length;
                u32 length = component.length <= ACTA_INLINE_MOST ? component.length : u32(ACTA_LONG);
                u32 tag = u32(component.hash >> 32) & 7;
                wanted = length | state >> ACTA_BASE_BITS << ACTA_HEADER_TURN_SHIFT | tag << ACTA_TAG_SHIFT;
                jump = u32(component.hash >> 32);
            }
            // The base is below the number of buckets, and so is the sum once that is taken off.
            u32 bucket = state % (1u << ACTA_BASE_BITS) + u32(u64(jump) * bucket_count >> 32);
            if (bucket >= bucket_count) bucket -= bucket_count;
            u32 filter;
            Entry entry = search(text, component, bucket, wanted, &filter);
            if (entry.header != 0) {
                u32 payload = entry.start + (component.length <= ACTA_INLINE_MOST ? component.length : 8);
                bool leads = (entry.header & ACTA_LEADS) != 0, ends = (entry.header & ACTA_ENDS) != 0;
                const u32* words = words_of(bucket) + payload / 4;
                u32 shift = payload % 4 * 8, needed = payload % 4 + (leads ? 4 : 0) + (ends ? width : 0);
                u32 middle = needed > 4 ? element(words + 1) : 0, last = needed > 8 ? element(words + 2) : 0;
                u32 first = funnel(element(words), middle, shift), after = funnel(middle, last, shift);
                if (ends) found = Found{keep_bytes(leads ? after : first, width), at - start};
                state = first;
                is_second = false;
                goes_on = leads && at < end;
            } else {
                u32 low = u32(component.hash), bit = (low & 0xffff) * u32(ACTA_FILTER_BITS) >> 16;
                goes_on = !is_second && (filter >> bit & 1) != 0;
                is_second = true;
                wanted |= 1u << ACTA_CHOICE_SHIFT;
                jump = low;
            }
        }
        return found;
    }

    // The component from `start` on, up to a slash or `end`.
    template <class Text>
    WS_FN Component read(const Text& text, u32 start, u32 end) const {
        Component component;
        component.start = start;
        u64 sum = seed0;
        u32 at = start, shift = start % 4 * 8, last = text.word_before(start / 4, end), count;
        do {
            u32 words[4], ahead = end - at / 4 * 4;
            WS_UNROLL
            for (u32 i = 0; i < 4; i++) {
                u32 next = ahead > 4 * (i + 1) ? text.word(at / 4 + i + 1) : 0;
                words[i] = funnel(last, next, shift);
                last = next;
            }
            count = first_slash_of(words);
            count = count < end - at ? count : end - at;
            WS_UNROLL
            for (u32 i = 0; i < 4; i++) words[i] = keep_bytes(words[i], count > 4 * i ? count - 4 * i : 0);
            bool is_first = at == start;
            at += count;
            if (is_first || count != 0) {
                u64 a = u64(words[1]) << 32 | words[0], b = u64(words[3]) << 32 | words[2];
                sum = fold_product(sum ^ a, b ^ (ACTA_K ^ seed1));
            }
            if (is_first) {
                WS_UNROLL
                for (int i = 0; i < 4; i++) component.head[i] = words[i];
            }
        } while (count == 16);
        component.length = at - start;
        component.hash = fold_product(sum ^ component.length, ACTA_K2 ^ seed0);
        return component;
    }

    // The place of the first slash among sixteen bytes, 16 where there is none.
    static WS_FN u32 first_slash_of(const u32 words[4]) {
        u32 slashes = slashes_of(words[0]), before = 0;
        WS_UNROLL
        for (u32 i = 1; i < 4; i++) {
            bool is_later = slashes == 0;
            before = is_later ? 4 * i : before;
            slashes = is_later ? slashes_of(words[i]) : slashes;
        }
        return before + zeros_below(slashes) / 8;
    }

    // The entry of a bucket that has this header and these bytes; and the bucket's filter.
    //
    // Headers are compared and their sizes summed all at once, two in a word, as a loop over them would wait for the longest of a
    // warp's buckets. Most buckets have 7 entries at most, whose headers are the first four words.
    template <class Text>
    WS_FN Entry search(const Text& text, const Component& component, u32 bucket, u32 wanted, u32* filter) const {
        const u32* words = words_of(bucket);
        call_for(words + ACTA_BUCKET_BYTES / 8);
        Headers low = headers_of(words), high = headers_of(words + 4);
        u32 count = low.words[0] & 15;
        *filter = (low.words[0] & 0xffff) >> ACTA_FILTER_SHIFT;
        // The bucket's head is a header of no bytes from here on.
        low.words[0] &= 0xffff0000;
        u32 both = wanted << 16 | wanted;
        // A bit for each header; those after the last are of payloads.
        u32 equal = equal_to(low, both);
        if (count >= 8) equal |= equal_to(high, both) << 8;
        equal &= low_bits(count + 1) & ~1u;
        while (equal != 0) {
            u32 number = zeros_below(equal);
            u32 sum = bytes_to(low, number);
            if (number >= 8) sum += bytes_to(high, number - 8);
            u32 start = ACTA_BUCKET_BYTES - sum;
            u32 header = element(reinterpret_cast<const u16*>(words) + number);
            if (has(text, component, words, start)) return Entry{start, header};
            equal &= equal - 1;
        }
        return Entry{0, 0};
    }

    // Which of eight headers are a wanted one, but for whether it leads and ends: a bit for each.
    static WS_FN u32 equal_to(const Headers& headers, u32 both) {
        constexpr u32 compared = ~(u32(ACTA_LEADS | ACTA_ENDS) * 0x00010001u);
        u32 differ = 0;
        WS_UNROLL
        for (u32 i = 0; i < 4; i++) {
            u32 other = (headers.words[i] ^ both) & compared;
            // The highest bit of a half says whether any of it is set.
            u32 any = ((other & 0x7fff7fff) + 0x7fff7fff) | other;
            differ |= any >> (15 - 2 * i) & 0x00010001u << 2 * i;
        }
        return ~(differ | differ >> 15) & 0xff;
    }

    // Bytes of the payloads of the first of eight headers, up to a number.
    WS_FN u32 bytes_to(const Headers& headers, u32 number) const {
        // Fields of both halves are summed where they are: no sum goes over into the next.
        u32 lengths = 0, longs = 0, leads = 0, ends = 0;
        WS_UNROLL
        for (u32 i = 0; i < 4; i++) {
            u32 here = headers.words[i] & low_bits(number + 1 > 2 * i ? 16 * (number + 1 - 2 * i) : 0);
            u32 length = here & u32(ACTA_LONG) * 0x00010001u;
            lengths += length;
            // Only a length of all ones has one more bit then.
            longs += (length + 0x00010001) & 0x00400040;
            leads += here & u32(ACTA_LEADS) * 0x00010001u;
            ends += here & u32(ACTA_ENDS) * 0x00010001u;
        }
        u32 sum = lengths + (leads >> 6) * 4 + (ends >> 7) * width - (longs >> 6) * u32(ACTA_LONG - 8);
        return (sum & 0xffff) + (sum >> 16);
    }

    // Four words of a bucket at once.
    static WS_FN Headers headers_of(const u32* at) {
#if WS_GPU
        auto v = __ldg(reinterpret_cast<const uint4*>(at));
        return Headers{{v.x, v.y, v.z, v.w}};
#else
        return Headers{{at[0], at[1], at[2], at[3]}};
#endif
    }

    // Whether the payload at a place in a bucket is of this component.
    template <class Text>
    WS_FN bool has(const Text& text, const Component& component, const u32* words, u32 at) const {
        if (component.length > ACTA_INLINE_MOST) return has_long(text, component, words, at);
        // No word is read that has no byte of it, as that would be of another bucket.
        u32 shift = at % 4 * 8, needed = at % 4 + component.length, differ = 0;
        words += at / 4;
        u32 last = element(words);
        WS_UNROLL
        for (u32 i = 0; i < 4; i++) {
            u32 next = needed > 4 * (i + 1) ? element(words + (i + 1)) : 0;
            u32 left = component.length > 4 * i ? component.length - 4 * i : 0;
            differ |= keep_bytes(funnel(last, next, shift) ^ component.head[i], left);
            last = next;
        }
        if (component.length <= 16 || differ != 0) return differ == 0;
        u32 from = component.start + 16, from_shift = from % 4 * 8, end = component.start + component.length;
        u32 last_there = text.word_before(from / 4, end);
        for (u32 done = 16; done < component.length && differ == 0; done += 4) {
            u32 next = needed > done + 4 ? element(words + done / 4 + 1) : 0;
            u32 there = text.word_before((from + done - 16) / 4 + 1, end);
            u32 other = funnel(last, next, shift) ^ funnel(last_there, there, from_shift);
            differ = keep_bytes(other, component.length - done);
            last = next;
            last_there = there;
        }
        return differ == 0;
    }

    // The same of a component that lies elsewhere: the payload says where, and how long it is.
    template <class Text>
    WS_FN bool has_long(const Text& text, const Component& component, const u32* words, u32 at) const {
        u32 place = bytes_of(words, at), length = bytes_of(words, at + 4), end = component.start + component.length;
        if (length != component.length || u64(place) + (length + 7) / 8 > long_words) return false;
        const u32* bytes = longs + u64(place) * 2;
        for (u32 done = 0; done < length; done += 4) {
            u32 here = keep_bytes(text.four(component.start + done, end), length - done);
            if (here != element(bytes + done / 4)) return false;
        }
        return true;
    }

    WS_FN const u32* words_of(u32 bucket) const {
        return reinterpret_cast<const u32*>(buckets) + u64(bucket) * (ACTA_BUCKET_BYTES / 4);
    }

    // Four bytes of a bucket.
    static WS_FN u32 bytes_of(const u32* words, u32 at) {
        return funnel(element(words + at / 4), element(words + at / 4 + 1), at % 4 * 8);
    }
};
