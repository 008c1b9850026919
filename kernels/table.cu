// What is done to any table, and what measures the memory that tables lie in.

#include "wirespeed.cuh"

// Writes of a patch (`wirespeed-image`): each location once, so that their order doesn't matter.
struct Write {
    // Where: an address on the device, of an element of `bytes` bytes.
    u64 at;
    u64 value;
};

struct Writes {
    const Write* writes;
    u64 count;
};

// How many of the writes are to elements of 1, 2 and 4 bytes; they come first, in this order, and those of 8 bytes last.
struct Widths {
    u64 of_1, of_2, of_4;
};

WS_KERNEL(patch, 1024, Writes, patch, Widths, widths) {
    block.each([&](u32 thread) {
        u64 all = u64(block.count()) * block.threads();
        for (u64 i = u64(block.index()) * block.threads() + thread; i < patch.count; i += all) {
            Write write = patch.writes[i];
            if (i < widths.of_1) {
                *reinterpret_cast<u8*>(write.at) = u8(write.value);
            } else if (i < widths.of_1 + widths.of_2) {
                *reinterpret_cast<u16*>(write.at) = u16(write.value);
            } else if (i < widths.of_1 + widths.of_2 + widths.of_4) {
                *reinterpret_cast<u32*>(write.at) = u32(write.value);
            } else {
                *reinterpret_cast<u64*>(write.at) = write.value;
            }
        }
    });
}

// GALE's way to update (GAMT, section 5): each write by a launch of its own.
struct Single {
    u64 at;
    u64 value;
};

struct Width {
    u64 bytes;
};

WS_KERNEL(patch_one, 32, Single, write, Width, width) {
    block.each([&](u32 thread) {
        if (thread != 0 || block.index() != 0) return;
        switch (width.bytes) {
            case 1: *reinterpret_cast<u8*>(write.at) = u8(write.value); break;
            case 2: *reinterpret_cast<u16*>(write.at) = u16(write.value); break;
            case 4: *reinterpret_cast<u32*>(write.at) = u32(write.value); break;
            default: *reinterpret_cast<u64*>(write.at) = write.value;
        }
    });
}
