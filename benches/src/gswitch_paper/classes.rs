//! Figure 3: how many rules the classes of real sets have.

use anyhow::Result;
use wirespeed_classify::{Classes, Ipv4Tuple};

use super::{Figure, Scale, float};
use crate::classify::data;
use crate::gpu::plot::Plot;
use crate::report::Sheet;

/// The sets that stand for the paper's: ACL of 1,834 rules, "IPF" of 914, IPC of 2,180.
const SETS: [&str; 6] = ["acl1_1k", "fw1_1k", "ipc1_1k", "acl1_10k", "fw1_10k", "ipc1_10k"];

/// Figure 3: for each size of a class the share of classes that have no more rules. Entries are what classes
/// are of: a rule with a range of ports has several.
pub fn figure(scale: &Scale) -> Result<Vec<Figure>> {
    let mut sheet = Sheet {
        title: "Figure 3: rules of a class, cumulative".into(),
        columns: &["set", "rules", "entries", "classes", "rules_at_most", "share_of_classes"],
        rows: Vec::new(),
    };
    for name in SETS {
        let set = data::set(name)?;
        if set.rules.len() > scale.rules.max(1_000) {
            continue;
        }
        let Classes(classes) = set.rules.classes();
        let mut sizes: Vec<usize> =
            classes.iter().map(|class: &wirespeed_classify::Class<Ipv4Tuple>| class.entries.len()).collect();
        sizes.sort_unstable();
        let count = sizes.len();
        let (rules, entries) = (set.rules.len().to_string(), set.rules.entries_len().to_string());
        for (at, size) in sizes.iter().enumerate() {
            // The last of each size.
            if sizes.get(at + 1) != Some(size) {
                let share = format!("{:.4}", float(at + 1) / float(count));
                let cells = [&rules, &entries, &count.to_string(), &size.to_string(), &share];
                let row = std::iter::once(&set.name).chain(cells);
                sheet.rows.push(row.cloned().collect());
            }
        }
    }
    let plot =
        Plot { x: "rules_at_most", y: "share_of_classes", curves: &["set"], log_x: true, ..Plot::NONE };
    Ok(vec![Figure { name: "figure-3".into(), sheet, plots: vec![plot] }])
}
