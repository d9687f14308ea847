//! A report with one of everything, which the tests render.

use crate::{Axis, Claim, Datum, Figure, FigureKind, Interval, Line, Point, Published, Report, Table};

pub(crate) fn report() -> Report {
    Report {
        name: "example".into(),
        title: "A <title>".into(),
        words: vec!["What this shows.".into()],
        figures: vec![lines(), heat_map()],
        claims: vec![
            Claim::new("four times", "4.5 times".into(), true, "unused"),
            Claim::new("idle 1 %", "9 %".into(), false, "because"),
        ],
        tables: vec![Table {
            title: "All numbers".into(),
            head: vec!["a".into(), "b".into()],
            rows: vec![vec!["1".into(), "a|b".into()]],
            note: String::new(),
            is_long: true,
        }],
    }
}

pub(crate) fn lines() -> Figure {
    let mut lard = Line::exact("lard", [(1.0, 100.0), (2.0, 450.0), (4.0, 1234.5)]);
    lard.points[1].datum = Datum::Number(Interval { low: 400.0, median: 450.0, high: 500.0 });
    let mut wrr = Line::exact("wrr", [(1.0, 100.0), (2.0, 200.0)]);
    wrr.points.push(Point { x: 4.0, datum: Datum::Unfair("one client had no answer".into()) });
    Figure {
        name: "f".into(),
        title: "Throughput & more".into(),
        x: "nodes".into(),
        y: Axis::linear("", "requests/s"),
        lines: vec![wrr, lard],
        published: vec![Published::point(2.0, 400.0, "published: 4x")],
        ..Figure::default()
    }
}

pub(crate) fn heat_map() -> Figure {
    let mut wide = Line::exact("40", [(1000.0, 20_500.0), (4000.0, 21_000.0)]);
    wide.points.push(Point { x: 8000.0, datum: Datum::Cannot("no such number of files".into()) });
    let mut narrow = Line::exact("4", [(1000.0, 900.0)]);
    narrow.points.push(Point { x: 4000.0, datum: Datum::Unfair("one client had no answer".into()) });
    Figure {
        name: "matrix".into(),
        title: "What was tried".into(),
        kind: FigureKind::HeatMap,
        x: Axis::linear("connections", ""),
        y: Axis::linear("rate", "requests/s"),
        by: "processes".into(),
        lines: vec![wide, narrow],
        ..Figure::default()
    }
}
