//! Circles of imports between files.

use std::collections::BTreeSet;

use super::Graph;

/// The circles: files each of which leads to each other, in order.
pub(super) fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let reached: Vec<(&str, BTreeSet<&str>)> =
        graph.keys().map(|file| (file.as_str(), reached(graph, file))).collect();
    let (mut circles, mut seen) = (Vec::new(), BTreeSet::new());
    for (file, reach) in &reached {
        if seen.contains(file) || !reach.contains(file) {
            continue;
        }
        let leads_back =
            |(other, back): &&(&str, BTreeSet<&str>)| reach.contains(other) && back.contains(file);
        let circle: Vec<&str> = reached.iter().filter(leads_back).map(|(other, _)| *other).collect();
        seen.extend(circle.iter().copied());
        circles.push(circle);
    }
    circles
}

/// The files that a file leads to, itself where it is in a circle.
fn reached<'g>(graph: &'g Graph, from: &str) -> BTreeSet<&'g str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(file) = next.pop() {
        for import in graph.get(file).into_iter().flatten() {
            if reached.insert(import.as_str()) {
                next.push(import);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directions::allowed::ALLOWED;
    use crate::directions::modules::graph_of;
    use crate::step;

    /// The imports between the files of a circle, to be read.
    fn told(graph: &Graph, circle: &[&str]) -> String {
        let mut told = String::new();
        for file in circle {
            for import in graph[*file].iter().filter(|import| circle.contains(&import.as_str())) {
                told += &format!("  {file} -> {import}\n");
            }
        }
        told
    }

    #[test]
    fn files_import_in_no_circle_but_those_that_have_a_reason() {
        let graph = graph_of(&step::root()).unwrap();
        assert!(
            graph.len() > 300 && graph.values().any(|imports| imports.len() > 5),
            "imports were not read"
        );
        let found = circles(&graph);
        let is_allowed = |circle: &[&str]| ALLOWED.iter().any(|(files, _)| *files == circle);
        let wrong: Vec<_> = found.iter().filter(|circle| !is_allowed(circle)).collect();
        let told: String = wrong
            .iter()
            .zip(1..)
            .map(|(circle, n)| format!("circle {n}:\n{}", told(&graph, circle)))
            .collect();
        assert!(wrong.is_empty(), "{} circles of imports:\n{told}", wrong.len());
        for (files, why) in ALLOWED {
            assert!(
                !why.is_empty() && found.iter().any(|circle| circle == files),
                "no circle any more: {files:?}"
            );
        }
    }

    #[test]
    fn circles_are_found() {
        let graph: Graph = [("a", "b"), ("b", "c"), ("c", "b"), ("d", "a")]
            .map(|(from, to)| (from.to_owned(), [to.to_owned()].into()))
            .into();
        assert_eq!(circles(&graph), [["b", "c"]]);
    }
}
