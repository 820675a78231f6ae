//! Charts as SVG text: nothing is fetched, nothing runs.

use crate::figures::short;
use crate::record::Chart;
use crate::statistics::Spread;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;
/// Room for the numbers of the vertical axis.
const LEFT: f64 = 70.0;
/// Room for the numbers of the horizontal axis.
const BOTTOM: f64 = 34.0;
/// Room for the last number of the horizontal axis.
const RIGHT: f64 = 24.0;
/// Room above the plot.
const TOP: f64 = 12.0;
/// Height of one bar with its name.
const BAR: f64 = 24.0;
/// Room for the names of bars.
const BAR_LEFT: f64 = 330.0;
/// Lines across the plot.
const GRID: u32 = 4;

/// Colours that can be distinguished without seeing red and green (Okabe and Ito, 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666", "#000000"];

/// A bar: median, with a line from the smallest to the largest sample.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What stands left of it.
    pub name: String,
    /// Its length and the ends.
    pub spread: Spread,
}

/// The colour of a variant's number.
pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// Text with HTML's special characters escaped.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Lines with axes and a legend.
pub fn lines(chart: &Chart) -> String {
    let points = || chart.lines.iter().flat_map(|line| line.points.iter());
    let x_max = points().map(|(x, _)| *x).fold(1.0, f64::max);
    let x_min = points().map(|(x, _)| *x).fold(x_max, f64::min);
    let y_max = round_up(points().map(|(_, y)| *y).fold(0.0, f64::max));
    let plot_width = WIDTH - LEFT - RIGHT;
    let plot_height = HEIGHT - TOP - BOTTOM;
    let x_of = |x: f64| LEFT + (x - x_min) / (x_max - x_min).max(f64::EPSILON) * plot_width;
    let y_of = |y: f64| TOP + (1.0 - y / y_max) * plot_height;
    let mut svg = open(WIDTH, HEIGHT, &chart.title);
    for step in 0..=GRID {
        let value = y_max * f64::from(step) / f64::from(GRID);
        let y = y_of(value);
        let right = WIDTH - RIGHT;
        push(
            &mut svg,
            &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ),
        );
        text(&mut svg, LEFT - 6.0, y + 4.0, "end", &plain(value));
        let at = x_min + (x_max - x_min) * f64::from(step) / f64::from(GRID);
        text(&mut svg, x_of(at), HEIGHT - BOTTOM + 16.0, "middle", &plain(at));
    }
    text(&mut svg, WIDTH - RIGHT, HEIGHT - 4.0, "end", &chart.x);
    for (number, line) in chart.lines.iter().enumerate() {
        let path: Vec<String> =
            line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y))).collect();
        push(
            &mut svg,
            &format!(
                "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"{}\"><title>{}</title></polyline>",
                colour(number),
                path.join(" "),
                escape(&line.name)
            ),
        );
    }
    svg.push_str("</svg>");
    let names = chart.lines.iter().map(|line| line.name.as_str());
    format!("<p class=\"unit\">{}</p>{svg}{}", escape(&chart.y), legend(names))
}

/// Bars with the spread of their samples.
pub fn bars(title: &str, bars: &[Bar]) -> String {
    let max = round_up(bars.iter().map(|bar| bar.spread.max).fold(0.0, f64::max));
    let height = BAR * bars.len() as f64 + 8.0;
    let length_of = |value: f64| value / max * (WIDTH - BAR_LEFT - 90.0);
    let mut svg = open(WIDTH, height, title);
    for (number, bar) in bars.iter().enumerate() {
        let y = BAR * number as f64 + 4.0;
        let (middle, spread) = (y + BAR / 2.0 - 2.0, &bar.spread);
        text(&mut svg, BAR_LEFT - 6.0, middle + 4.0, "end", &bar.name);
        push(
            &mut svg,
            &format!(
                "<rect x=\"{BAR_LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" opacity=\"0.75\"/>",
                length_of(spread.median),
                BAR - 6.0,
                colour(number)
            ),
        );
        let (from, to) = (BAR_LEFT + length_of(spread.min), BAR_LEFT + length_of(spread.max));
        push(
            &mut svg,
            &format!(
                "<path class=\"spread\" d=\"M{from:.1} {:.1}v8m0 -4H{to:.1}m0 -4v8\"/>",
                middle - 3.0
            ),
        );
        text(
            &mut svg,
            to.max(BAR_LEFT + length_of(spread.median)) + 6.0,
            middle + 4.0,
            "start",
            &short(spread.median),
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Parts of a whole, one bar for each name, with a legend.
pub fn shares(title: &str, rows: &[(String, Vec<(String, f64)>)]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|(_, parts)| parts) {
        if !kinds.contains(&name.as_str()) {
            kinds.push(name);
        }
    }
    let mut svg = open(WIDTH, BAR * rows.len() as f64 + 8.0, title);
    for (number, (name, parts)) in rows.iter().enumerate() {
        let y = BAR * number as f64 + 4.0;
        text(&mut svg, BAR_LEFT - 6.0, y + BAR / 2.0 + 2.0, "end", name);
        let total = parts.iter().map(|(_, part)| part).sum::<f64>().max(f64::EPSILON);
        let mut x = BAR_LEFT;
        for (kind, part) in parts {
            let width = part / total * (WIDTH - BAR_LEFT - 10.0);
            let index = kinds.iter().position(|known| known == kind).unwrap_or(0);
            push(
                &mut svg,
                &format!(
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{} {:.0} %</title></rect>",
                    BAR - 6.0,
                    colour(index),
                    escape(kind),
                    part / total * 100.0
                ),
            );
            x += width;
        }
    }
    svg.push_str("</svg>");
    svg + &legend(kinds.into_iter())
}

fn open(width: f64, height: f64, title: &str) -> String {
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">", escape(title))
}

fn legend<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut html = String::from("<p class=\"legend\">");
    for (number, name) in names.enumerate() {
        let (colour, name) = (colour(number), escape(name));
        push(&mut html, &format!("<span><i style=\"background:{colour}\"></i>{name}</span> "));
    }
    html + "</p>"
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape(words);
    push(svg, &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"));
}

/// A number of an axis: without zeros at its end.
fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn push(into: &mut String, piece: &str) {
    writeln!(into, "{piece}").expect("writing to memory does not fail");
}

/// The next number that begins with 1, 2 or 5 (or 1.5, 3, 4, 6, 8), so that the grid has round numbers.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= value * 0.999)
        .unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests;
