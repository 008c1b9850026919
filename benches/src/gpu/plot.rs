//! Curves as SVG, from the sheets that records are made of.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::report::Sheet;

/// The part of a sheet that a plot shows.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// The column along the x axis.
    pub x: &'static str,
    /// The column along the y axis.
    pub y: &'static str,
    /// The columns whose words together name a curve.
    pub curves: &'static [&'static str],
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Two curves. The place where the second rises above the first is marked.
    pub crossing: Option<[&'static str; 2]>,
}

impl Plot {
    /// A plot of nothing, with linear axes and no mark.
    pub const NONE: Self = Self { x: "", y: "", curves: &[], log_x: false, crossing: None };
}

/// The points of a curve, ascending in x.
type Curve = [(f64, f64)];

/// The place from which on the second curve is above the first: the last one, if there are several. `None` if
/// the second curve is never above, or always.
fn crossing(first: &Curve, second: &Curve) -> Option<f64> {
    let lead = |&(x, y): &(f64, f64)| {
        let other = second.iter().find(|(at, _)| *at == x)?;
        Some((x, other.1 - y))
    };
    let leads: Vec<(f64, f64)> = first.iter().filter_map(lead).collect();
    let crosses = |pair: &&[(f64, f64)]| pair[0].1 <= 0.0 && pair[1].1 > 0.0;
    let pair = leads.windows(2).rfind(crosses)?;
    let [(from, below), (to, above)] = pair.try_into().ok()?;
    Some(from + (to - from) * -below / (above - below))
}

/// A curve for each name, in one picture.
pub fn svg(sheet: &Sheet, plot: &Plot) -> Result<String> {
    let column = |name: &str| {
        let found = sheet.columns.iter().position(|&column| column == name);
        found.ok_or_else(|| anyhow!("no column {name} in {:?}", sheet.title))
    };
    let (x, y) = (column(plot.x)?, column(plot.y)?);
    let names: Vec<usize> = plot.curves.iter().map(|name| column(name)).collect::<Result<_>>()?;
    let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in &sheet.rows {
        let name: Vec<&str> = names.iter().map(|&at| row[at].as_str()).collect();
        // A cell without a number is a figure that wasn't measured.
        if let (Ok(x), Ok(y)) = (row[x].parse::<f64>(), row[y].parse::<f64>()) {
            curves.entry(name.join(" ")).or_default().push((if plot.log_x { x.log2() } else { x }, y));
        }
    }
    curves.values_mut().for_each(|points| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let curve = |name: &str| curves.get(name).map_or(&[][..], |points| points);
    let crossing = plot.crossing.and_then(|[first, second]| {
        let at = crossing(curve(first), curve(second))?;
        let x = if plot.log_x { at.exp2() } else { at };
        Some((at, format!("{second} above {first} from {x:.0} on")))
    });
    let points = || curves.values().flatten();
    let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let top = points().map(|point| point.1).fold(0.0, f64::max) * 1.05;
    if !(low < high && top > 0.0) {
        return Err(anyhow!("nothing to plot in {:?}", sheet.title));
    }
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (900, 560)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&sheet.title, ("sans-serif", 15))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(low..high, 0.0..top)?;
        let name_x = if plot.log_x { format!("{}, log2", plot.x) } else { plot.x.to_owned() };
        chart.configure_mesh().x_desc(name_x).y_desc(plot.y).draw()?;
        for (at, (name, points)) in curves.iter().enumerate() {
            let color = Palette99::pick(at).to_rgba();
            chart
                .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)).point_size(3))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        }
        if let Some((at, words)) = crossing {
            let style = BLACK.stroke_width(1);
            let line = DashedLineSeries::new([(at, 0.0), (at, top)], 6, 4, style);
            chart
                .draw_series(line)?
                .label(words)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .position(SeriesLabelPosition::UpperLeft)
            .draw()?;
        area.present()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_for_each_name() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).into();
        let sheet = Sheet {
            title: "a sheet".into(),
            columns: &["way", "keys", "rate"],
            rows: vec![
                row(["copies", "256", "1.5"]),
                row(["copies", "1024", "3.5"]),
                row(["mapped", "256", "2"]),
                row(["mapped", "1024", "-"]),
            ],
        };
        let plot = Plot { x: "keys", y: "rate", curves: &["way"], log_x: true, ..Plot::NONE };
        let svg = svg(&sheet, &plot).unwrap();
        assert!(svg.contains("copies") && svg.contains("mapped") && svg.contains("a sheet"));
        let none = Sheet { rows: Vec::new(), ..sheet };
        assert!(super::svg(&none, &plot).is_err());
    }

    #[test]
    fn the_place_is_found_where_one_curve_rises_above_another() {
        let flat = [(1.0, 4.0), (2.0, 4.0), (4.0, 4.0), (8.0, 4.0)];
        assert_eq!(crossing(&flat, &[(1.0, 0.0), (2.0, 2.0), (4.0, 6.0), (8.0, 9.0)]), Some(3.0));
        assert_eq!(crossing(&flat, &[(2.0, 2.0), (4.0, 4.0), (8.0, 8.0)]), Some(4.0));
        assert_eq!(crossing(&flat, &[(1.0, 0.0), (8.0, 3.0)]), None);
        assert_eq!(crossing(&flat, &flat.map(|(x, y)| (x, y + 1.0))), None);
        assert_eq!(crossing(&flat, &[]), None);
        let row = |way: &str, keys: i32, rate: i32| vec![way.into(), keys.to_string(), rate.to_string()];
        let rows = [2, 4].map(|keys| [row("cpu", keys, 3), row("gpu", keys, keys)]).concat();
        let sheet = Sheet { title: "t".into(), columns: &["way", "keys", "rate"], rows };
        let plot =
            Plot { x: "keys", y: "rate", curves: &["way"], crossing: Some(["cpu", "gpu"]), ..Plot::NONE };
        assert!(svg(&sheet, &plot).unwrap().contains("gpu above cpu from 3 on"));
        let other = Plot { crossing: Some(["gpu", "cpu"]), ..plot };
        assert!(!svg(&sheet, &other).unwrap().contains("above"));
    }
}
