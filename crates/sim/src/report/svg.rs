//! A figure as SVG: axes, lines, a legend, and diamonds where something is published.

use std::fmt::Write;

use super::contents::{Figure, Line};
use super::number::brief;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 54.0;
/// Room for tilted names, if they are too long for a row.
const BOTTOM_TILTED: f64 = 104.0;
/// The approximate width of a letter.
const LETTER: f64 = 7.0;

/// Colours that colour-blind readers can distinguish (Okabe and Ito, 2008), used in turn.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7a7a00"];
/// With the colours used up, lines are dashed.
const DASHES: [&str; 3] = ["", "6 3", "2 3"];

/// Draws a figure.
#[must_use]
pub fn render(figure: &Figure) -> String {
    let all = || {
        let points = figure.lines.iter().flat_map(|line| line.points.iter().copied());
        points.chain(figure.marks.iter().map(|mark| (mark.x, mark.y)))
    };
    // Names have room on both sides, for bars.
    let names = figure.x_names.len() as f64;
    let beside = if figure.x_names.is_empty() { Vec::new() } else { vec![-0.5, names - 0.5] };
    let xs =
        Axis::new(all().map(|point| point.0).chain(beside), figure.x_is_logarithmic, (LEFT, WIDTH - RIGHT));
    let longest = figure.x_names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let is_tilted = longest as f64 * LETTER * names > WIDTH - LEFT - RIGHT;
    let bottom = HEIGHT - if is_tilted { BOTTOM_TILTED } else { BOTTOM };
    let ys = Axis::new(all().map(|point| point.1).chain([0.0]), false, (bottom, TOP)).up_to_a_tick();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{0}</text>\n",
        escaped(&figure.title)
    );
    axes(&mut svg, figure, &xs, &ys, is_tilted);
    let mut legend_y = TOP + 6.0;
    for (number, line) in figure.lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let same = figure.lines[..number].iter().find(|other| coincide(line, other, &xs, &ys));
        let dash = match same {
            // So that the line below shows through.
            Some(_) => "7 7",
            None => DASHES[number / COLOURS.len() % DASHES.len()],
        };
        if figure.x_names.is_empty() {
            curve(&mut svg, line, colour, dash, &xs, &ys);
        } else {
            bars(
                &mut svg,
                line,
                colour,
                number as f64 / figure.lines.len() as f64,
                figure.lines.len(),
                &xs,
                &ys,
            );
        }
        let (x, y) = (WIDTH - RIGHT + 14.0, legend_y);
        legend_y += LEGEND_LINE;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dash}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            x + 22.0,
            x + 28.0,
            y + 4.0,
            escaped(&line.name)
        );
        if let Some(same) = same {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" font-size=\"10\">the same as {}</text>",
                x + 28.0,
                legend_y + 2.0,
                escaped(&same.name)
            );
            legend_y += LEGEND_LINE;
        }
    }
    for mark in &figure.marks {
        let (x, y) = (xs.place(mark.x), ys.place(mark.y));
        // On the side where there is room.
        let (anchor, label_x) = if x > (WIDTH - RIGHT) * 0.6 { ("end", x - 9.0) } else { ("start", x + 9.0) };
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {0:.1}l6 6l-6 6l-6 -6z\" fill=\"#fff\" stroke=\"#c00\" stroke-width=\"2\"/>\
             <text x=\"{label_x:.1}\" y=\"{1:.1}\" text-anchor=\"{anchor}\" fill=\"#c00\" stroke=\"#fff\" \
             stroke-width=\"4\" paint-order=\"stroke\">{2}</text>",
            y - 6.0,
            y + 18.0,
            escaped(&mark.label)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Height of a line of the legend.
const LEGEND_LINE: f64 = 19.0;

/// Whether readers could not tell two curves apart.
fn coincide(one: &Line, other: &Line, xs: &Axis, ys: &Axis) -> bool {
    let near = |(a, b): (&(f64, f64), &(f64, f64))| {
        (xs.place(a.0) - xs.place(b.0)).abs() < 1.0 && (ys.place(a.1) - ys.place(b.1)).abs() < 1.0
    };
    !one.points.is_empty()
        && one.points.len() == other.points.len()
        && one.points.iter().zip(&other.points).all(near)
}

fn curve(svg: &mut String, line: &Line, colour: &str, dash: &str, xs: &Axis, ys: &Axis) {
    let places = || line.points.iter().map(|&(x, y)| (xs.place(x), ys.place(y)));
    let path: Vec<String> = places().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
        path.join(" ")
    );
    if path.len() <= DOTS_MAX {
        for (x, y) in places() {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }
}

/// A bar at each name, those of all lines side by side; this line's begin at a share of the room.
fn bars(svg: &mut String, line: &Line, colour: &str, begin: f64, count: usize, xs: &Axis, ys: &Axis) {
    const ROOM: f64 = 0.8;
    for &(x, y) in &line.points {
        let left = xs.place(x + ROOM * (begin - 0.5));
        let right = xs.place(x + ROOM * (begin + 1.0 / count as f64 - 0.5));
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            ys.place(y),
            right - left - 1.0,
            ys.place(0.0) - ys.place(y)
        );
    }
}

/// Lines of more points are drawn without dots.
const DOTS_MAX: usize = 40;

fn axes(svg: &mut String, figure: &Figure, xs: &Axis, ys: &Axis, is_tilted: bool) {
    let (left, right, top, bottom) = (LEFT, WIDTH - RIGHT, TOP, ys.from);
    for tick in ys.ticks() {
        let y = ys.place(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 4.0,
            tick_label(tick)
        );
    }
    let named = figure.x_names.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
    let numbered = xs
        .ticks()
        .into_iter()
        .map(|tick| (tick, if tick.fract() == 0.0 { format!("{tick:.0}") } else { brief(tick) }));
    let ticks: Vec<(f64, String)> =
        if figure.x_names.is_empty() { numbered.collect() } else { named.collect() };
    for (tick, label) in ticks {
        let x = xs.place(tick);
        let place = match is_tilted {
            true => {
                format!("transform=\"translate({x:.1} {})rotate(-35)\" text-anchor=\"end\"", bottom + 16.0)
            }
            false => format!("x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\"", bottom + 19.0),
        };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#000\"/>\
             <text {place}>{}</text>",
            bottom + 5.0,
            escaped(&label)
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#000\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(16 {})rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (left + right) / 2.0,
        HEIGHT - 14.0,
        escaped(&figure.x),
        (top + bottom) / 2.0,
        escaped(&figure.y)
    );
}

fn tick_label(tick: f64) -> String {
    if tick.fract() == 0.0 && tick < 1000.0 { format!("{tick:.0}") } else { brief(tick) }
}

/// Values on one side, places in the picture on the other.
struct Axis {
    least: f64,
    most: f64,
    is_logarithmic: bool,
    /// What is counted has no halves.
    is_whole: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, is_logarithmic: bool, (from, to): (f64, f64)) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (mut least, mut most, is_whole) =
            finite.fold((f64::MAX, f64::MIN, true), |(least, most, is_whole), value| {
                (least.min(value), most.max(value), is_whole && value.fract() == 0.0)
            });
        if least > most {
            (least, most) = (0.0, 1.0);
        }
        if is_logarithmic {
            least = least.max(1e-9);
        }
        if least == most {
            most = least + 1.0;
        }
        Self { least, most, is_logarithmic, is_whole, from, to }
    }

    /// Ends at the next round number, so that nothing is above the grid's last line.
    fn up_to_a_tick(mut self) -> Self {
        let ticks = self.ticks();
        if let [.., before, last] = ticks[..]
            && self.most > last
        {
            self.most = last + (last - before);
        }
        self
    }

    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_logarithmic { value.max(self.least).ln() } else { value };
        let share = (scale(value) - scale(self.least)) / (scale(self.most) - scale(self.least));
        self.from + share * (self.to - self.from)
    }

    /// Round numbers, five to ten of them; with equal factors, powers of two or ten.
    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let base: f64 = if self.most / self.least > 2048.0 { 10.0 } else { 2.0 };
            let first = self.least.log(base).ceil() as i32;
            return (first..)
                .map(|power| base.powi(power))
                .take_while(|tick| *tick <= self.most * 1.001)
                .collect();
        }
        let rough = (self.most - self.least) / 8.0;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(unit).max(if self.is_whole { 1.0 } else { 0.0 });
        let first = (self.least / step).ceil() as i64;
        (first..)
            .map(|number| number as f64 * step)
            .take_while(|tick| *tick <= self.most + step * 1e-9)
            .collect()
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let axis =
            |values: [f64; 2], is_logarithmic| Axis::new(values.into_iter(), is_logarithmic, (0.0, 100.0));
        assert_eq!(axis([0.0, 8719.0], false).ticks(), [0.0, 2000.0, 4000.0, 6000.0, 8000.0]);
        assert_eq!(axis([1.0, 16.0], true).ticks(), [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(axis([1.0, 16.0], true).place(4.0), 50.0);
        assert_eq!(axis([0.0, 3.0], false).ticks(), [0.0, 1.0, 2.0, 3.0], "there are no half nodes");
        assert_eq!(axis([0.0, 2.5], false).ticks().len(), 6);
        assert_eq!(axis([5.0, 5.0], false).place(5.0), 0.0, "a single value has a position");
        let whole = axis([0.0, 8719.0], false).up_to_a_tick();
        assert_eq!((whole.ticks().last(), whole.place(10_000.0)), (Some(&10_000.0), 100.0));
    }
    #[test]
    fn lines_that_coincide_say_so() {
        let line = |name: &str, y: f64| Line { name: name.into(), points: vec![(1.0, 1.0), (2.0, y)] };
        let lines = vec![line("a", 400.0), line("b", 400.2), line("c", 300.0)];
        let svg = render(&Figure { x: "nodes".into(), y: "requests/s".into(), lines, ..Figure::default() });
        assert_eq!(svg.matches("the same as").count(), 1);
        assert!(svg.contains("the same as a<"), "{svg}");
    }
}
