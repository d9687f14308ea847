//! Pages of figures, in a real browser.

use baton_figures::{Axis, Claim, Datum, Figure, FigureKind, Interval, Line, Point, Published, Report, page};

use crate::common::browser::Browser;
use crate::common::folder::Folder;

/// Goal: in both schemes of colours, and on a page of 700 pixels, nothing is outside its box and every text is readable.
/// Method: one of every kind of figure, with names as long as they get, and what Chromium computes.
#[test]
fn figures_stay_within_their_boxes_in_the_light_and_in_the_dark() {
    let folder = Folder::new();
    let path = folder.path("page.html");
    folder.write("page.html", page("What was found", &[report()]));
    let mut browser = Browser::start(&folder);
    let mut papers = Vec::new();
    for scheme in ["light", "dark"] {
        browser.look(700, scheme);
        browser.open(&format!("file://{}", path.display()));
        let outside = browser.run(OUTSIDE);
        assert_eq!(outside.as_array().map(Vec::len), Some(0), "{scheme}: {outside}");
        assert_eq!(
            browser.run("document.documentElement.scrollWidth <= innerWidth"),
            true,
            "no scrolling aside"
        );
        let faint = browser.run(FAINT);
        assert_eq!(faint.as_array().map(Vec::len), Some(0), "{scheme}: {faint}");
        let least = browser.run(LEAST).as_f64();
        assert!(least >= Some(11.0), "{scheme}: the smallest text has {least:?} pixels");
        papers.push(browser.run("getComputedStyle(document.querySelector('svg .paper')).fill"));
    }
    assert_ne!(papers[0], papers[1], "the dark is dark");
}

/// Every element of a figure that is not within its box, with what it shows.
const OUTSIDE: &str = "[...document.querySelectorAll('svg')].flatMap(svg => {
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text, rect, path, line, polyline, circle')].filter(element => {
        const part = element.getBoundingClientRect();
        return part.left < box.left - 0.5 || part.right > box.right + 0.5
            || part.top < box.top - 0.5 || part.bottom > box.bottom + 0.5;
    }).map(element => svg.querySelector('title').textContent + ': ' + element.outerHTML);
})";

/// Every text of a figure whose contrast to the paper is below 4.5 to 1, and every line below 3 to 1 (WCAG 2.2, 1.4.3, 1.4.11).
const FAINT: &str = "(() => {
    const light = color => {
        const [r, g, b] = color.match(/[\\d.]+/g).map(part => part / 255)
            .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return [...document.querySelectorAll('svg')].flatMap(svg => {
        const paper = light(getComputedStyle(svg.querySelector('.paper')).fill);
        const wanted = [['text', 'fill', 4.5], ['polyline, .l', 'stroke', 3], ['circle', 'fill', 3]];
        return wanted.flatMap(([kind, part, least]) => [...svg.querySelectorAll(kind)].filter(element =>
            !element.matches('.c') && contrast(light(getComputedStyle(element)[part]), paper) < least
        ).map(element => element.outerHTML));
    });
})()";

/// The height of the smallest text on the screen, in pixels.
const LEAST: &str = "Math.min(...[...document.querySelectorAll('svg')].flatMap(svg => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll('text')].map(text => parseFloat(getComputedStyle(text).fontSize) * scale);
}))";

const LONG: &str = "eight front-ends with WWWWWW wide names";

fn report() -> Report {
    Report {
        name: "everything".into(),
        title: "One of each".into(),
        words: vec!["Words without a place to break: ".to_owned() + &"w".repeat(300)],
        figures: vec![lines(), many_lines(), bars(3), bars(12), heat_map()],
        claims: vec![Claim::new("a claim", "does not hold".into(), false, "of a reason")],
        ..Report::default()
    }
}

fn spread(median: f64) -> Datum {
    Datum::Number(Interval { low: 0.9 * median, median, high: 1.2 * median })
}

fn line(name: &str, values: &[f64]) -> Line {
    let point = |(at, value): (usize, &f64)| Point { x: at as f64, datum: spread(*value) };
    Line { name: name.into(), points: values.iter().enumerate().map(point).collect() }
}

fn lines() -> Figure {
    let mut unfair = line(LONG, &[1e6, 2e6, 1.5e6]);
    unfair.points[2].datum = Datum::Unfair("a client had no answer".into());
    Figure {
        title:
            "A title that is so long that it has to be broken into two lines, since it does not fit into one"
                .into(),
        x: Axis::linear(&format!("What the horizontal axis measures, {LONG}, {LONG}, {LONG}"), "seconds"),
        y: Axis::linear("throughput", "requests/s"),
        lines: vec![unfair, line("below zero", &[-1e6, 12_345_678.0, 5.0])],
        published: vec![
            Published::point(2.0, 12_345_678.0, format!("published: {LONG}")),
            Published { name: "published: a line".into(), points: vec![(0.0, 1e6), (2.0, 9e6)] },
        ],
        ..Figure::default()
    }
}

/// More lines than colours, on an axis of factors.
fn many_lines() -> Figure {
    let of =
        |number: u32| Line::exact(format!("line {number}"), [(1.0, 10.0), (1e6, f64::from(10 + number))]);
    Figure {
        title: "Many lines".into(),
        x: Axis::logarithmic("connections", ""),
        y: Axis::logarithmic("delay", "ms"),
        lines: (0..20).map(of).collect(),
        ..Figure::default()
    }
}

fn bars(count: usize) -> Figure {
    let values: Vec<f64> = (0..count).map(|at| 100.0 + at as f64).collect();
    Figure {
        title: format!("{count} bars"),
        kind: FigureKind::Bars,
        x: Axis::named("", (0..count).map(|at| format!("{LONG} {at}")).collect()),
        y: Axis::linear("throughput", "%"),
        lines: vec![line("ours", &values), line("theirs", &values)],
        ..Figure::default()
    }
}

fn heat_map() -> Figure {
    let mut first = line(LONG, &[1_234_567.0; 14]);
    first.points[3].datum = Datum::Cannot("no such file system".into());
    Figure {
        title: "A heat map".into(),
        kind: FigureKind::HeatMap,
        x: Axis::linear("connections", ""),
        y: Axis::linear("rate", "requests/s"),
        by: "processes".into(),
        lines: vec![first, line("2", &[2e6; 14])],
        ..Figure::default()
    }
}
