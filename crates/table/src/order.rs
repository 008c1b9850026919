//! [`sort_by_number`]: one compiled sort for all types.

/// Sorts by a number; items with equal numbers keep their order. By `!number` the largest comes first. O(n
/// log n).
///
/// A slice's own sorts are compiled anew for each type and each closure, and take the compiler more time than
/// most of what calls them. This one sorts numbers, and then moves each item once.
pub fn sort_by_number<T>(items: &mut [T], number: impl Fn(&T) -> u64) {
    let mut order: Vec<_> = items.iter().enumerate().map(|(at, item)| (number(item), at)).collect();
    sort(&mut order);
    arrange(items, order);
}

#[inline(never)] // compiled here, as it is not generic
fn sort(order: &mut [(u64, usize)]) {
    order.sort_unstable();
}

/// Moves each item to its place in an order.
#[inline(never)] // one copy for all crates
fn arrange<T>(items: &mut [T], mut order: Vec<(u64, usize)>) {
    for start in 0..items.len() {
        // Follows a circle of items, each of which goes to the place of the one before.
        let mut to = start;
        loop {
            let from = std::mem::replace(&mut order[to].1, to);
            if from == start {
                break;
            }
            items.swap(to, from);
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_where_a_stable_sort_puts_them() {
        for count in 0..90 {
            for factor in [0, 1, 7, 40, 9_973] {
                let mut items: Vec<(u64, u64)> = (0..count).map(|at| (at * factor % 41, at)).collect();
                let mut right = items.clone();
                right.sort_by_key(|&(number, _)| number);
                sort_by_number(&mut items, |&(number, _)| number);
                assert_eq!(items, right);
            }
        }
    }
}
